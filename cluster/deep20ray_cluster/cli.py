"""The command line. Data goes to stdout, narration to stderr; every error is one line and an exit code.

The base commands (keys, sign, verify, audit and the like) work without Ray or an HTTP client installed; what plays games is imported
when it is used.
"""

import json
import os
import sys
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime
from importlib import resources
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
import typer.main
from typer.core import TyperGroup

import deep20ray
from deep20ray.errors import Deep20RayError, UsageError
from deep20ray_cluster.cli_authoring import cohort_app, prompts_app
from deep20ray_cluster.cli_checking import archive_app, audit
from deep20ray_cluster.cli_plan import ask_first, show_plan
from deep20ray_cluster.cli_redact import redact
from deep20ray_cluster.cli_release import release_app
from deep20ray_cluster.cli_signing import keys_app, sign
from deep20ray_cluster.cli_trust import catalog_app, trust_app
from deep20ray_cluster.extra import needs_run_extra
from deep20ray_cluster.terminal import Json, MaybeTrust, Trust, complain, one_line

if TYPE_CHECKING:
    from deep20ray_cluster.driver import Done, Options
    from deep20ray_cluster.sweep import Sweep

EXIT_CODES = (
    "Exit codes: 0 done, 1 internal error, 2 usage or configuration, 3 incomplete but resumable, "
    "4 verification failed, 5 budget reached, 130 interrupted."
)

ENV_PREFIX = "DEEP20RAY"
"""Of the environment's names for options, which are made of the command's and the option's name."""


@dataclass(slots=True)
class _Settings:
    debug: bool = False


class _Commands(TyperGroup):
    """The commands. Ctrl-C becomes an error of ours here, because Typer's versions differ in what they make of it."""

    def invoke(self, ctx: typer.Context) -> Any:  # type: ignore[override]
        try:
            return super().invoke(ctx)
        except KeyboardInterrupt:
            raise _Interrupted("interrupted") from None


class _Interrupted(Deep20RayError):
    exit_code = 130


app = typer.Typer(
    name="deep20ray",
    cls=_Commands,
    help="Play Twenty Questions with language models, and sign and check the results.",
    epilog=EXIT_CODES,
    no_args_is_help=True,
    add_completion=True,
    pretty_exceptions_enable=False,
)
app.add_typer(keys_app, name="keys")
reuse_app = typer.Typer(help="Reused answers.", no_args_is_help=True)
app.add_typer(reuse_app, name="reuse")
app.add_typer(cohort_app, name="cohort")
app.add_typer(prompts_app, name="prompts")
app.add_typer(archive_app, name="archive")
app.add_typer(release_app, name="release")
app.add_typer(trust_app, name="trust")
app.add_typer(catalog_app, name="catalog")
app.command("sign")(sign)
app.command("audit")(audit)
app.command("redact")(redact)

OutFolder = Annotated[Path, typer.Option("--out", help="The sweep's folder; it must not hold a sweep yet.")]
SweepDir = Annotated[Path, typer.Argument(help="The folder that `run` wrote.")]
Address = Annotated[
    str | None, typer.Option("--address", help="A Ray cluster to join: auto on one of its nodes, or HOST:PORT; a local Ray without it.")
]
Results = Annotated[str | None, typer.Option("--results", help="Where sealed runs are copied to, such as s3://bucket/prefix.")]
ProgressMode = Annotated[str, typer.Option("--progress", help="auto, plain or none.")]


@app.callback(invoke_without_command=True)
def _root(
    ctx: typer.Context,
    version: Annotated[bool, typer.Option("--version", help="The version, then end.")] = False,
    debug: Annotated[bool, typer.Option("--debug", help="Show where an internal error happened.")] = False,
) -> None:
    ctx.obj.debug = debug
    if version:
        print(f"deep20ray {deep20ray.__version__}")
        raise typer.Exit


@app.command()
def run(
    out: OutFolder,
    sweep: Annotated[Path | None, typer.Argument(help="A sweep file; the embedded simulator's demo sweep without it.")] = None,
    address: Address = None,
    results: Results = None,
    progress: ProgressMode = "auto",
    json_: Json = False,
    ask_above: Annotated[float, typer.Option("--ask-above", help="Ask first if it may well cost more US dollars than this.")] = 10.0,
    yes: Annotated[bool, typer.Option("--yes", help="Don't ask.")] = False,
) -> None:
    """Plan a sweep, play it, and seal its runs."""
    needs_run_extra()
    from deep20ray_cluster import driver

    settings, text, base = _sweep(sweep)
    options = replace(_options(address, progress, results), approve=lambda plan: ask_first(plan, ask_above, yes=yes))
    _report(driver.start(settings, text, base, out, options), json_)


@app.command()
def plan(
    sweep: Annotated[Path | None, typer.Argument(help="A sweep file; the embedded simulator's demo sweep without it.")] = None,
    like: Annotated[list[Path] | None, typer.Option("--like", help="A signed earlier run whose games are like these; repeatable.")] = None,
    trust: MaybeTrust = None,
    json_: Json = False,
) -> None:
    """Show what a sweep will take, before it is played: calls, searches, cost, time and disk, by model and role.

    Nothing is called. Without --like, games are taken to go like recorded ones, and calls to be as long as what is sent.
    """
    needs_run_extra()
    settings, _, base = _sweep(sweep)
    show_plan(settings, base, like or [], trust or [], as_json=json_)


@app.command()
def preflight(
    sweep: Annotated[Path | None, typer.Argument(help="A sweep file; the embedded simulator's demo sweep without it.")] = None,
    address: Address = None,
    json_: Json = False,
) -> None:
    """Try a sweep out: one small real call per role and model, before any trial; says which key, model, feature or price is missing.

    The calls cost what they cost. Ends with 2 if something must be corrected, with 3 if another try may help.
    """
    needs_run_extra()
    from deep20ray_cluster.preflight import preflight as try_out

    settings, _, base = _sweep(sweep)
    print("trying every role, model and search once; this takes a moment", file=sys.stderr)
    report = try_out(settings, base, _options(address, "none"))
    if json_:
        print(json.dumps({"checks": [asdict(check) for check in report.checks]}))
    else:
        for check in report.checks:
            print(f"{check.state:6}", one_line(f"{check.what}{f' ({check.account})' if check.account else ''}: {check.detail}"))
    if report.exit_code:
        complain(f"{report.failures} of {len(report.checks)} checks failed; the sweep would stop on them")
        raise typer.Exit(report.exit_code)


@app.command()
def resume(
    folder: SweepDir, address: Address = None, results: Results = None, progress: ProgressMode = "auto", json_: Json = False
) -> None:
    """Go on with a sweep that was stopped or killed; nothing that was paid for is paid for again."""
    needs_run_extra()
    from deep20ray_cluster import driver

    _report(driver.resume(folder, _options(address, progress, results)), json_)


@app.command()
def repair(
    folder: SweepDir, address: Address = None, results: Results = None, progress: ProgressMode = "auto", json_: Json = False
) -> None:
    """Try again the trials that ended by infrastructure; only their failed calls are made anew.

    A trial has three attempts, the first one included. A run whose trials have used them up is sealed as incomplete and stays so.
    """
    needs_run_extra()
    from deep20ray_cluster import driver

    _report(driver.resume(folder, _options(address, progress, results), repair=True), json_)


@app.command()
def verify(run_folder: Annotated[Path, typer.Argument(help="A signed run's folder.")], trust: Trust, json_: Json = False) -> None:
    """Verify a signed run: signature, files, tables, and that its turns give its counts and scores."""
    from deep20ray_artifacts.trust import load_trust
    from deep20ray_artifacts.verify import verify_run

    verified = verify_run(run_folder, load_trust(trust, datetime.now(UTC)))
    predicate = verified.statement.predicate
    redacted = () if verified.redaction is None else verified.redaction.redacted
    facts = {
        "run_id": predicate.run_id,
        "edition": predicate.edition,
        "model": predicate.model.id,
        "status": predicate.status,
        "simulated": predicate.simulated,
        "trials": predicate.counts.trials,
        "scored": verified.tables["trials"]["status"].to_pylist().count("scored"),
        "turns": predicate.counts.turns,
        "keyid": verified.keyid,
        "redacted": [field.model_dump() for field in redacted],
    }
    if json_:
        print(json.dumps(facts))
    else:
        kind = "simulated run" if predicate.simulated else "run"
        counts = predicate.counts
        part = "" if predicate.status == "complete" else f"incomplete, {facts['scored']} scored, "
        print(f"verified: {kind} {predicate.run_id}, {part}{counts.trials} trials, {counts.turns} turns, signed by {verified.keyid[:16]}")
        for field in redacted:
            print(one_line(f"redacted: {field.line}"))


@reuse_app.command("explain")
def reuse_explain(folder: SweepDir, json_: Json = False) -> None:
    """Show, question by question, which answers were reused, where they came from, and why others were not."""
    needs_run_extra()
    from deep20ray_cluster.driver import load_plan
    from deep20ray_cluster.explain import explain, lines
    from deep20ray_cluster.folder import open_folder
    from deep20ray_cluster.journal import read_events

    sweep = open_folder(folder)
    found = explain(load_plan(sweep), read_events(sweep.journal))
    if json_:
        print(json.dumps(found))
    else:
        for text in lines(found):
            print(" " * (len(text) - len(text.lstrip())) + one_line(text))


def command_line() -> TyperGroup:
    """All commands. Each says the exit codes, and each option may stand in the environment, under the command's and its own name."""
    whole = typer.main.get_command(app)
    assert isinstance(whole, TyperGroup)

    def walk(command: Any, name: str) -> None:
        command.epilog = EXIT_CODES
        for each in command.params:
            if each.param_type_name == "option" and each.expose_value:
                each.envvar = f"{name}_{each.opts[0].lstrip('-')}".replace("-", "_").upper()
        for inner, deeper in getattr(command, "commands", {}).items():
            walk(deeper, f"{name}_{inner}")

    walk(whole, ENV_PREFIX)
    return whole


def main() -> int:
    """The ``deep20ray`` command. Returns or exits with a documented code."""
    settings = _Settings()
    try:
        command_line()(obj=settings)
    except Deep20RayError as error:
        complain(str(error))
        return error.exit_code
    except Exception as error:  # the last boundary: a user gets one line
        if settings.debug:
            raise
        complain(f"internal error: {type(error).__name__}: {error}; `deep20ray --debug ...` shows where, please report it")
        return 1
    return 0


def _sweep(path: Path | None) -> "tuple[Sweep, str, Path]":
    """A sweep file's settings, its text, and what its paths are relative to; the demo sweep without one."""
    from deep20ray_cluster.sweep import parse_sweep, read_sweep

    if path is not None:
        return *read_sweep(path), path.parent
    text = resources.files("deep20ray_cluster").joinpath("demo.toml").read_text(encoding="utf-8")
    return parse_sweep(text, "the demo sweep"), text, Path.cwd()


def _options(address: str | None, progress: str, results: str | None = None) -> "Options":
    from deep20ray_cluster.driver import Options
    from deep20ray_cluster.progress import Progress

    if progress not in ("auto", "plain", "none"):
        raise UsageError(f"--progress {progress}: choose auto, plain or none")
    return Options(environ=os.environ, address=address, progress=Progress(progress), results=results)


def _report(done: "Done", json_: bool) -> None:
    """Says how a drive ended and ends with its exit code."""
    if json_:
        facts = {
            "folder": str(done.folder.root),
            "scored": done.scored,
            "owed": done.owed,
            "given_up": done.given_up,
            "stopped": done.stopped,
            "budget_reached": done.budget,
            "sealed": [str(path) for path in done.sealed],
            "uncopied": done.uncopied,
        }
        print(json.dumps(facts))
    else:
        for path in done.sealed:
            print(path)
    if done.given_up:
        complain(f"{done.given_up} trials ended by infrastructure in every attempt they had; their runs are sealed as incomplete")
    if done.uncopied:
        complain(done.uncopied)
    if not done.owed:
        if done.given_up or done.uncopied:
            raise typer.Exit(3)
        return
    if done.budget and not done.interrupted and done.stopped in (None, done.budget):
        how = f"raise max_cost_usd in {done.folder.sweep_file}, then `deep20ray resume {done.folder.root}`"
        complain(f"{done.budget}; {done.owed} trials are owed: {how}")
        raise typer.Exit(5)
    verb = "resume"
    if done.interrupted:
        why = "interrupted"
    elif done.stopped:
        why = f"stopped: {done.stopped}"
        verb = "repair" if done.failed else "resume"
    else:
        why, verb = "some trials ended by infrastructure", "repair"
    complain(f"{why}; {done.owed} trials are owed, go on with `deep20ray {verb} {done.folder.root}`")
    raise typer.Exit(130 if done.interrupted else 3)


if __name__ == "__main__":
    sys.exit(main())
