"""The commands that look behind a result: the audit of what every role was sent, and the private archive.

They work in the base installation; only what rebuilds wire requests out of a private archive needs the extra ``run``.
"""

import json
import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from deep20ray.errors import UsageError
from deep20ray_cluster.extra import needs_run_extra
from deep20ray_cluster.terminal import Json, MaybeTrust, complain, one_line

if TYPE_CHECKING:
    from deep20ray_artifacts.audit import AuditReport, CallId, Recomputed
    from deep20ray_artifacts.verify import SealedRun
    from deep20ray_cluster.playback import Played

archive_app = typer.Typer(help="The private archive of a run.", no_args_is_help=True)

RunFolder = Annotated[Path, typer.Argument(help="A run's folder.")]
Private = Annotated[
    Path | None, typer.Option("--private", help="The run's private archive: then also every wire request is computed again.")
]
_SHOWN = 20


def audit(
    run_folder: RunFolder,
    trust: MaybeTrust = None,
    private: Private = None,
    cohort: Annotated[str | None, typer.Option("--cohort", help="The cohort's name or file, where it isn't a built-in one.")] = None,
    requests: Annotated[
        Path | None, typer.Option("--requests", help="With --private: write every request as it was sent to this new file (private).")
    ] = None,
    json_: Json = False,
) -> None:
    """Compute again what every role was sent, and compare it with the run's audits. Ends with 4 if anything is wrong or missing.

    Without --private, what only the private archive shows is counted and not checked.
    """
    from deep20ray_artifacts.audit import audit_run
    from deep20ray_cluster.pinned import compared_cohort, unpinned_prompts

    run = load_run(run_folder, trust or [])
    compared, prompts = compared_cohort(run, cohort), unpinned_prompts(run)
    played = None if private is None else _played(run, private)
    archive: dict[CallId, Recomputed] | None = None if played is None else {key: call.recomputed for key, call in played.items()}
    report = audit_run(run, archive)
    if requests is not None and played is not None:
        _write_requests(requests, played)
    if json_:
        print(json.dumps(report.document() | {"cohort": compared, "unpinned_prompts": prompts}))
    else:
        _show(report, compared, prompts, None if private is None else played is not None)
    if not report.complete:
        total = report.total
        complain(f"{run_folder}: {total.wrong} calls' records are wrong and {total.missing} required ones missing; don't rely on this run")
        raise typer.Exit(4)


@archive_app.command("purge")
def purge(
    run_folder: RunFolder,
    private: Annotated[
        Path | None, typer.Option("--private", help="The archive's folder; ../../private/RUN_ID beside the run if left out.")
    ] = None,
    trust: MaybeTrust = None,
    yes: Annotated[bool, typer.Option("--yes", help="Delete without asking.")] = False,
) -> None:
    """Delete a run's private archive. The statement's commitment to it stays, and so does all that is public."""
    from deep20ray_artifacts.private import purge_private
    from deep20ray_artifacts.statement import time_text

    run = load_run(run_folder, trust or [])
    predicate = run.statement.predicate
    sweep = run_folder.absolute().parent.parent
    folder = private or sweep / "private" / predicate.run_id
    if not yes and not sys.stdin.isatty():
        raise UsageError(f"{folder} would be deleted for ever, which is asked about first; say --yes")
    if not yes and not typer.confirm(f"deep20ray: delete {folder} for ever?", err=True):
        raise UsageError("nothing was deleted")
    deleted = purge_private(folder, predicate, time_text(datetime.now(UTC)))
    print(f"{'purged' if deleted else 'already purged'}: {folder}; the statement still commits to what it held")
    if private is None and (sweep / "journal.sqlite").exists():
        complain(f"{sweep / 'journal.sqlite'} holds the same and is needed to resume this sweep; delete it when every run is done")


def load_run(run_folder: Path, trust: list[Path]) -> "SealedRun":
    """A run that is known to be whole: signed by one of those keys, or sealed and not signed yet.

    Raises:
        VerificationError, KeyRefused: it isn't, or a key can't be used.
    """
    from deep20ray_artifacts.trust import load_trust
    from deep20ray_artifacts.verify import STATEMENT_NAME, check_sealed, verify_run

    if not trust and (run_folder / STATEMENT_NAME).exists():
        return check_sealed(run_folder)
    return verify_run(run_folder, load_trust(trust, datetime.now(UTC)))


def _played(run: "SealedRun", private: Path) -> "dict[CallId, Played] | None":
    from deep20ray_artifacts.private import read_private

    files = read_private(private, run.statement.predicate)
    if files is None:
        return None
    needs_run_extra()
    from deep20ray_cluster.playback import playback

    return playback(run, files)


def _write_requests(path: Path, played: "dict[CallId, Played]") -> None:
    """One JSON object a line; readable by the owner alone."""
    from dataclasses import asdict

    from deep20ray_artifacts.files import write_new

    lines = [
        json.dumps({**asdict(key), "method": sent.method, "path": sent.path, "headers": dict(sent.headers), "body": sent.body.decode()})
        for key, call in played.items()
        if (sent := call.request) is not None
    ]
    try:
        write_new(path, "".join(f"{each}\n" for each in lines).encode(), 0o600)
    except OSError as error:
        raise UsageError(f"--requests {path}: can't be written ({error.strerror}); name a new file") from None


def _show(report: "AuditReport", compared: str, prompts: list[str], archive: bool | None) -> None:
    print(f"audit of {report.run_id}: cohort {compared}")
    if prompts:
        print(one_line(f"  played with prompts that this version doesn't have: {', '.join(prompts)}"))
    for role, counts in report.roles.items():
        words = [f"{counts.calls} calls", f"{counts.checked} messages checked"]
        if report.with_archive:
            words.append(f"{counts.requests_checked} requests checked")
        else:
            words.append(f"{counts.archive_only} checkable only with the archive")
            words += [f"{counts.redacted} redacted since"] if counts.redacted else []
        print(f"  {role:10}", ", ".join([*words, f"{counts.wrong} wrong", f"{counts.missing} missing"]))
    for run_id, answers in report.elsewhere.items():
        print(f"  {answers} answers were given in {run_id}, whose own audit covers them")
    for finding in report.findings[:_SHOWN]:
        print("  " + one_line(finding.line))
    if len(report.findings) > _SHOWN:
        print(f"  and {len(report.findings) - _SHOWN} more; --json has all")
    if archive is False:
        print("  the private archive was purged: what it alone shows can't be checked any more")
