"""The command that redacts a public field of a signed run: for takedowns and the like. It needs no Ray and signs nothing."""

import shutil
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from deep20ray.canonical import sha256
from deep20ray.errors import UsageError
from deep20ray_cluster.terminal import Trust

if TYPE_CHECKING:
    from deep20ray_artifacts.verify import VerifiedRun


def redact(
    run_folder: Annotated[Path, typer.Argument(help="A signed run's folder, redacted earlier or not.")],
    turn: Annotated[str, typer.Option("--turn", help="Which turn: SUBJECT:ROUND:TURN, such as T-0001:2:14.")],
    field: Annotated[str, typer.Option("--field", help="question, guess_name, guess_description, url, excerpt or text (of a violation).")],
    reason: Annotated[str, typer.Option("--reason", help="Why, in a few words; it is published.")],
    out: Annotated[Path, typer.Option("--out", help="The folder to write RUN_ID into.")],
    trust: Trust,
    number: Annotated[int | None, typer.Option("--number", help="Which evidence item, for its url or excerpt.")] = None,
) -> None:
    """Replace a public field of a run by its digest, wherever the same text stands in that column. Sign the result with `deep20ray sign`.

    The run keeps its original attestation, and verifies as it did but for the redacted fields, which say who redacted what, when and why.
    """
    from deep20ray_artifacts.errors import InvalidRecord
    from deep20ray_artifacts.redaction import Wish
    from deep20ray_artifacts.redaction import redact as redacted
    from deep20ray_artifacts.statement import time_text
    from deep20ray_artifacts.trust import load_trust
    from deep20ray_artifacts.verify import verify_run

    run = verify_run(run_folder, load_trust(trust, datetime.now(UTC)))
    trial_id, number_of_turn = _place(run, turn)
    earlier = () if run.redaction is None else run.redaction.redacted
    wish = Wish(trial_id, number_of_turn, field, number)
    try:
        redaction, tables = redacted(
            run.statement.predicate, run.statement_sha256, run.tables, earlier, [wish], reason, time_text(datetime.now(UTC))
        )
    except InvalidRecord as error:
        raise UsageError(str(error)) from None
    target = out / run.statement.predicate.run_id
    _write(run_folder, run, target, redaction.statement(), tables)
    places = len(redaction.redacted) - len(earlier)
    print(f"{target}: {places} fields redacted; sign it with `deep20ray sign {target} --key KEY`")


def _place(run: "VerifiedRun", turn: str) -> tuple[str, int]:
    subject, _, rest = turn.partition(":")
    round_, _, number = rest.partition(":")
    for row in run.tables["trials"].to_pylist():
        if (row["subject_id"], str(row["round"])) == (subject, round_) and number.isdecimal():
            return row["trial_id"], int(number)
    raise UsageError(f"--turn {turn}: there is no such turn; write SUBJECT:ROUND:TURN, such as T-0001:2:14")


def _write(source: Path, run: "VerifiedRun", target: Path, draft: bytes, tables: dict[str, bytes]) -> None:
    """The redacted folder, whole and checked, or nothing."""
    from deep20ray_artifacts.errors import VerificationError, WriteFailed
    from deep20ray_artifacts.files import sync_folder, write_atomic
    from deep20ray_artifacts.redaction import DRAFT_NAME
    from deep20ray_artifacts.verify import ATTESTATION_NAME, check_redaction

    if target.exists() or target.is_symlink():
        raise UsageError(f"{target} exists; choose another folder with --out")
    files = {ATTESTATION_NAME: (source / ATTESTATION_NAME).read_bytes()}
    files |= {name: tables.get(name) or _same(source / name, digest) for name, digest in run.statement.digests.items()}
    # Under another name the folder isn't the run's, so it is checked in its place and taken away again if it won't do.
    try:
        target.mkdir(parents=True)
        for name, data in {**files, DRAFT_NAME: draft}.items():
            write_atomic(target / name, data)
        sync_folder(target.parent)
        check_redaction(target, DRAFT_NAME)
    except (VerificationError, WriteFailed):
        shutil.rmtree(target, ignore_errors=True)
        raise
    except OSError as error:
        shutil.rmtree(target, ignore_errors=True)
        raise WriteFailed(f"can't write {target}: {error.strerror or error}; free the disk or choose another folder") from None


def _same(path: Path, digest: str) -> bytes:
    """A file that isn't redacted, as it was verified.

    Raises:
        UsageError: it changed meanwhile.
    """
    data = path.read_bytes()
    if sha256(data) != digest:
        raise UsageError(f"{path} changed while it was read; try again when nothing writes there")
    return data
