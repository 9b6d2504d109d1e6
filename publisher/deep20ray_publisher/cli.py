"""The command line of the publisher. Data goes to stdout; every error is one line on stderr and an exit code."""

import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated

import typer

from deep20ray.errors import Deep20RayError, UsageError
from deep20ray_artifacts.audit import audit_run
from deep20ray_artifacts.contract import Contract
from deep20ray_artifacts.documents import read_document, verify_document
from deep20ray_artifacts.trust import load_trust
from deep20ray_artifacts.verify import verify_run
from deep20ray_publisher import __version__, site
from deep20ray_publisher.checking import check_site
from deep20ray_publisher.errors import AuditFailed, SiteFaulty
from deep20ray_publisher.serving import serve_site
from deep20ray_publisher.text import link, visible_plain

EXIT_CODES = "Exit codes: 0 done, 1 internal error, 2 usage or configuration, 4 verification or publication refused, 130 interrupted."

app = typer.Typer(
    name="deep20ray-publisher",
    help="Verify signed deep20ray runs and build the static results site.",
    epilog=EXIT_CODES,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
)

Trust = Annotated[list[Path], typer.Option("--trust", help="A trust file (.json) or public key (.pub); repeatable.")]


@app.callback(invoke_without_command=True)
def _root(version: Annotated[bool, typer.Option("--version", help="The version, then end.")] = False) -> None:
    if version:
        print(f"deep20ray-publisher {__version__}")
        raise typer.Exit


@app.command()
def build(
    runs: Annotated[list[Path], typer.Argument(help="Folders that hold signed run folders.")],
    trust: Trust,
    out: Annotated[Path, typer.Option("--out", help="The site's folder; it must not exist, or hold a site built by this command.")],
    preview: Annotated[
        bool, typer.Option("--preview", help="Publish runs that aren't official, marked as a preview on every page.")
    ] = False,
    contract: Annotated[
        list[Path] | None,
        typer.Option("--contract", help="A signed release contract, under which runs are official; repeat for several."),
    ] = None,
    catalog: Annotated[
        Path | None,
        typer.Option("--catalog", help="The signed catalog of runs: what it doesn't list, or lists as withdrawn, isn't official."),
    ] = None,
    base_url: Annotated[
        str | None,
        typer.Option("--base-url", help="Where the site will stand, such as https://results.example/; adds sitemap and previews."),
    ] = None,
    jobs: Annotated[int, typer.Option("--jobs", min=0, help="Processes that make pages; 0 for one per processor.")] = 0,
) -> None:
    """Verify every run found and build the site of the official ones. One invalid run stops the build, and nothing is written."""
    keys = load_trust(trust, datetime.now(UTC))
    contracts = [verify_document(Contract, path, keys) for path in contract or []]
    listing = None if catalog is None else read_document(catalog)
    pages, others = site.build(runs, keys, out, preview, contracts, listing, _base(base_url), jobs)
    for entry in others:
        print(f"deep20ray-publisher: left out, not official: {entry.record.run.run_id}: {'; '.join(entry.unofficial)}", file=sys.stderr)
    print(f"{out / 'index.html'}: {pages} pages{' (preview)' if preview else ''}")


def _base(url: str | None) -> str | None:
    if url is None:
        return None
    if link(url).href is None or set("?#") & set(url):
        raise UsageError(f"--base-url {visible_plain(url)} is no http(s) address; give one such as https://results.example/")
    return url if url.endswith("/") else f"{url}/"


@app.command()
def check(
    folder: Annotated[Path, typer.Argument(help="A built site's folder.")],
    forbid: Annotated[
        list[str] | None, typer.Option("--forbid", help="A text that must be in no file, such as a planted canary; repeat for several.")
    ] = None,
) -> None:
    """Check a built site: its files, links, HTML, page budgets, that nothing is inline or from elsewhere, and forbidden texts."""
    count = 0
    for line in check_site(folder, forbid or []):
        print(line)
        count += 1
    if count:
        raise SiteFaulty(f"{folder}: {count} fault{'' if count == 1 else 's'}; build the site again")
    print(f"{folder}: no faults")


@app.command()
def serve(
    folder: Annotated[Path, typer.Argument(help="A built site's folder.")],
    port: Annotated[int, typer.Option("--port", min=0, max=65535, help="The port on this machine; 0 takes a free one.")] = 8020,
) -> None:
    """Show a built site in a browser on this machine, with the headers that it should be served with. Ctrl-C ends it."""
    serve_site(folder, port, lambda address: print(address, flush=True))


@app.command()
def verify(run: Annotated[Path, typer.Argument(help="A signed run's folder.")], trust: Trust) -> None:
    """Verify and audit one signed run: signature, files, tables, that its turns give its counts and scores, and what each role was sent."""
    verified = verify_run(run, load_trust(trust, datetime.now(UTC)))
    predicate = verified.statement.predicate
    kind = "simulated run" if predicate.simulated else "run"
    part = "" if predicate.status == "complete" else "incomplete, "
    counts = predicate.counts
    print(f"verified: {kind} {predicate.run_id}, {part}{counts.trials} trials, {counts.turns} turns, signed by {verified.keyid}")
    for field in verified.redaction.redacted if verified.redaction else ():
        print(f"redacted: {visible_plain(field.line)}")
    report = audit_run(verified)
    total = report.total
    kept = f"{total.checked} computed again, {total.archive_only} in the private archive alone, {total.redacted} redacted"
    print(f"audited: {total.calls} calls: {kept}, {total.wrong} wrong, {total.missing} missing")
    if not report.complete:
        raise AuditFailed(f"{run}: {report.findings[0].line}; `deep20ray audit` shows all that was found")


def main() -> int:
    """The ``deep20ray-publisher`` command. Returns or exits with a documented code."""
    try:
        app()
    except Deep20RayError as error:
        print(f"deep20ray-publisher: {error}", file=sys.stderr)
        return error.exit_code
    except KeyboardInterrupt:
        print("deep20ray-publisher: interrupted", file=sys.stderr)
        return 130
    return 0


if __name__ == "__main__":
    sys.exit(main())
