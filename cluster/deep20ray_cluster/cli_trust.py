"""The commands that keep a trust file and a catalog of runs. They work in the base installation and touch no private key.

A catalog is written as a draft here and signed by the ordinary `sign`, on whatever machine has the key.
"""

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from deep20ray.errors import UsageError
from deep20ray_cluster.terminal import Json, Trust, one_line

if TYPE_CHECKING:
    from deep20ray_artifacts.catalog import Catalog
    from deep20ray_artifacts.documents import Signed
    from deep20ray_artifacts.keys import TrustedKey

trust_app = typer.Typer(help="The trust file: which keys are believed, from when to when, and for what.", no_args_is_help=True)
catalog_app = typer.Typer(help="The catalog of runs, which forgets none.", no_args_is_help=True)

TrustFileArgument = Annotated[Path, typer.Argument(help="The trust file, NAME.json.")]
Draft = Annotated[Path, typer.Argument(help="The draft to write or to add to, NAME.json; then sign it with `deep20ray sign`.")]
After = Annotated[Path | None, typer.Option("--after", help="The signed catalog that the draft follows; none for the first.")]
Identity = Annotated[str | None, typer.Option("--id", help="A first catalog's name: lower-case letters, digits, dots and hyphens.")]


@trust_app.command("init")
def trust_init(file: TrustFileArgument) -> None:
    """Write a trust file that trusts no key yet."""
    from deep20ray_artifacts.files import write_new
    from deep20ray_artifacts.trust import empty

    if file.suffix != ".json":
        raise UsageError(f"{file}: a trust file's name ends in .json")
    try:
        write_new(file, empty().data(), 0o644)
    except OSError as error:
        raise UsageError(f"{file}: can't be written ({error.strerror}); name a new file") from None
    print(f"{file}: version 1, no keys; add one with `deep20ray trust add`")


@trust_app.command("add")
def trust_add(
    file: TrustFileArgument,
    key: Annotated[Path, typer.Argument(help="The public key, NAME.pub.")],
    until: Annotated[str, typer.Option("--until", help="The last day that its statements may bear, YYYY-MM-DD.")],
    since: Annotated[str | None, typer.Option("--since", help="The first day, YYYY-MM-DD; today if left out.")] = None,
    edition: Annotated[list[str] | None, typer.Option("--edition", help="An edition whose runs it may sign; all if left out.")] = None,
    use: Annotated[list[str] | None, typer.Option("--use", help="What it may sign: runs, documents or catalog; all if left out.")] = None,
) -> None:
    """Trust a key, for a time, for editions and for kinds of statement."""
    from deep20ray_artifacts.files import write_atomic
    from deep20ray_artifacts.keys import load_public
    from deep20ray_artifacts.trust import USES, read_trust

    since = since or datetime.now(UTC).strftime("%Y-%m-%d")
    window = (f"{_day(since, '--since')}T00:00:00.000Z", f"{_day(until, '--until')}T23:59:59.999Z")
    changed = read_trust(file).added(load_public(key), key.stem, *window, edition or [], use or USES)
    write_atomic(file, changed.data())
    print(f"{file}: version {changed.version}, key {changed.keys[-1].keyid} from {since} to {until}")


@trust_app.command("revoke")
def trust_revoke(
    file: TrustFileArgument,
    keyid: Annotated[str, typer.Argument(help="The key's identity, or its first 12 digits or more.")],
    reason: Annotated[str, typer.Option("--reason", help="Why; readers are told.")],
    accept: Annotated[
        list[str] | None, typer.Option("--accept", help="Digest of a statement of its that still counts; repeat for several.")
    ] = None,
) -> None:
    """Trust a key no more, but for the statements named."""
    from deep20ray_artifacts.files import write_atomic
    from deep20ray_artifacts.statement import time_text
    from deep20ray_artifacts.trust import read_trust

    now = read_trust(file)
    found = [key.keyid for key in now.keys if len(keyid) >= 12 and key.keyid.startswith(keyid)]
    if len(found) != 1:
        raise UsageError(f"{file}: no key {keyid}; `deep20ray trust show {file}` lists them")
    changed = now.revoking(found[0], time_text(datetime.now(UTC)), reason, accept or [])
    write_atomic(file, changed.data())
    print(f"{file}: version {changed.version}, key {found[0]} is revoked; {len(accept or [])} statements of its still count")


@trust_app.command("show")
def trust_show(file: TrustFileArgument) -> None:
    """Show a trust file's keys."""
    from deep20ray_artifacts.trust import read_trust

    trust = read_trust(file)
    revoked = {each.keyid: each for each in trust.revoked}
    print(f"version {trust.version}, artifact schema {trust.minimum_artifact_schema} or later")
    for key in trust.keys:
        state = f"revoked: {revoked[key.keyid].reason}" if key.keyid in revoked else f"{key.not_before[:10]} to {key.not_after[:10]}"
        editions = f"editions {', '.join(key.editions)}" if key.editions else "every edition"
        print(one_line(f"{key.keyid} {key.name}: {state}; {', '.join(key.uses)}; {editions}{'; throwaway' if key.throwaway else ''}"))


@catalog_app.command("add")
def catalog_add(
    draft: Draft,
    runs: Annotated[list[Path], typer.Argument(help="Signed runs' folders.")],
    trust: Trust,
    after: After = None,
    id_: Identity = None,
) -> None:
    """List runs in the next catalog; one that was redacted since is listed as redacted."""
    from deep20ray_artifacts.verify import verify_run

    keys = _keys(trust)
    _write(draft, after, keys, id_, runs=[verify_run(run, keys) for run in runs])


@catalog_app.command("withdraw")
def catalog_withdraw(
    draft: Draft,
    run_id: Annotated[str, typer.Argument(help="The run's id.")],
    reason: Annotated[str, typer.Option("--reason", help="Why; readers are told.")],
    trust: Trust,
    after: After = None,
) -> None:
    """Mark a run of the catalog as withdrawn. It stays listed, with the reason."""
    _write(draft, after, _keys(trust), None, withdrawn={run_id: reason})


@catalog_app.command("verify")
def catalog_verify(
    catalog: Annotated[Path, typer.Argument(help="A signed catalog, NAME.dsse.json.")],
    trust: Trust,
    previous: Annotated[Path | None, typer.Option("--previous", help="An earlier catalog that this one must follow.")] = None,
    json_: Json = False,
) -> None:
    """Verify a catalog, and that it drops and rewrites nothing of an earlier one."""
    from deep20ray_artifacts.catalog import check_follows

    keys = _keys(trust)
    signed = _catalog(catalog, keys)
    if previous is not None:
        check_follows(signed, _catalog(previous, keys))
    found = signed.predicate
    if json_:
        print(json.dumps({"sha256": signed.sha256, **found.model_dump(mode="json")}))
        return
    for entry in found.entries:
        print(one_line(f"{entry.run_id} {entry.status}{'' if entry.reason is None else f': {entry.reason}'}"))
    print(f"verified: catalog {found.id} {found.version}, {len(found.entries)} runs, signed by {signed.keyid[:16]}")


def _keys(trust: list[Path]) -> "tuple[TrustedKey, ...]":
    from deep20ray_artifacts.trust import load_trust

    return load_trust(trust, datetime.now(UTC))


def _catalog(path: Path, keys: "tuple[TrustedKey, ...]") -> "Signed[Catalog]":
    from deep20ray_artifacts.catalog import Catalog
    from deep20ray_artifacts.documents import verify_document

    return verify_document(Catalog, path, keys)


def _write(draft: Path, after: Path | None, keys: "tuple[TrustedKey, ...]", id_: str | None, **changes: object) -> None:
    from deep20ray_artifacts.catalog import Catalog, next_catalog
    from deep20ray_artifacts.documents import SUFFIX, read_document
    from deep20ray_artifacts.errors import InvalidRecord
    from deep20ray_artifacts.files import write_atomic
    from deep20ray_artifacts.statement import time_text

    if draft.suffix != ".json" or draft.name.endswith(SUFFIX):
        raise UsageError(f"{draft}: a draft's name is NAME.json; `deep20ray sign` makes NAME{SUFFIX} of it")
    previous = None if after is None else _catalog(after, keys)
    started = Catalog.parse(read_document(draft)) if draft.exists() else None
    if started is not None and started.previous_sha256 != (None if previous is None else previous.sha256):
        raise UsageError(f"{draft}: it follows another catalog than --after names; name that one, or remove the draft")
    try:
        made = next_catalog(previous, started, id_, time_text(datetime.now(UTC)), **changes)  # type: ignore[arg-type]
    except InvalidRecord as error:
        raise UsageError(f"{draft}: {error}") from None
    write_atomic(draft, made.statement())
    print(f"{draft}: catalog {made.id} {made.version}, {len(made.entries)} runs; then `deep20ray sign {draft} --key KEY`")


def _day(text: str, option: str) -> str:
    try:
        return datetime.strptime(text, "%Y-%m-%d").replace(tzinfo=UTC).strftime("%Y-%m-%d")
    except ValueError:
        raise UsageError(f"{option} {text}: write a day as 2027-12-31") from None
