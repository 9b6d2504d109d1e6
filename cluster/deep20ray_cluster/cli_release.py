"""Commands for releases: a contract out of a plan, and what a contract says of a run. They need no Ray and play nothing."""

import json
from collections import defaultdict
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated

import typer

import deep20ray_cohorts
from deep20ray.errors import UsageError
from deep20ray_cluster.cli_checking import load_run
from deep20ray_cluster.terminal import Json, MaybeTrust, Trust, complain, one_line

release_app = typer.Typer(help="Release contracts: which runs are official.", no_args_is_help=True)


@release_app.command("draft")
def draft(
    plan: Annotated[Path, typer.Argument(help="A sweep's folder, or its plan.json.")],
    id_: Annotated[str, typer.Option("--id", help="The contract's id: lower-case letters, digits, dots and hyphens.")],
    out: Annotated[Path, typer.Option("--out", help="The file to write, NAME.json; it must not exist yet.")],
    served: Annotated[
        list[str] | None,
        typer.Option(
            "--served",
            help="ROLE=NAME or MODEL_ID=NAME: a name under which it may answer; repeat for several. Without any, the requested one.",
        ),
    ] = None,
    seen: Annotated[
        list[Path] | None, typer.Option("--seen", help="A run of the plan: its models may answer as they did there; repeat for several.")
    ] = None,
    trust: MaybeTrust = None,
    cohort: Annotated[str | None, typer.Option("--cohort", help="The cohort's name or file, where it isn't a built-in one.")] = None,
) -> None:
    """Write a release contract whose runs are those of a plan. Read it, correct it, then sign it with `deep20ray sign`."""
    from deep20ray_artifacts.contract import Contract
    from deep20ray_artifacts.errors import InvalidRecord
    from deep20ray_artifacts.files import write_new
    from deep20ray_artifacts.qualification import contract_facts

    data = _plan(plan)
    try:
        told = json.loads(data)
        subjects = _subjects(told["cohort"], cohort)
        facts = contract_facts(data, subjects, id_, _named(served or [], seen or [], trust or []))
    except (ValueError, KeyError, TypeError, IndexError):
        raise UsageError(f"{plan}: not the plan of a sweep; give the folder that `deep20ray run` wrote") from None
    try:
        contract = Contract.of(facts)
    except InvalidRecord as error:
        raise UsageError(f"{plan}: its runs can't be official: {error}") from None
    try:
        write_new(out, contract.statement(), 0o644)
    except OSError as error:
        raise UsageError(f"--out {out}: can't be written ({error.strerror}); name a new file") from None
    print(f"{out}: contract {contract.id}, {len(contract.guessers)} models registered; read it, then `deep20ray sign {out} --key KEY`")


@release_app.command("check")
def check(
    run_folder: Annotated[Path, typer.Argument(help="A signed run's folder.")],
    contract: Annotated[list[Path], typer.Option("--contract", help="A signed release contract; repeat for several.")],
    trust: Trust,
    json_: Json = False,
) -> None:
    """Say clause by clause whether a run is official under a contract. Ends with 4 if it is under none of those given."""
    from deep20ray_artifacts import qualification
    from deep20ray_artifacts.contract import Contract
    from deep20ray_artifacts.documents import verify_document
    from deep20ray_artifacts.trust import load_trust
    from deep20ray_artifacts.verify import verify_run

    keys = load_trust(trust, datetime.now(UTC))
    candidate = qualification.Candidate.of(verify_run(run_folder, keys), keys)
    results = []
    for path in contract:
        signed = verify_document(Contract, path, keys)
        clauses = qualification.check(candidate, signed.predicate)
        results.append({"contract": signed.predicate.id, "sha256": signed.sha256, "official": all(clause.holds for clause in clauses)})
        results[-1]["clauses"] = [asdict(clause) for clause in clauses]
        if not json_:
            for clause in clauses:
                print(one_line(f"{'ok' if clause.holds else 'no':3} {clause.name}{'' if clause.holds else f': {clause.found}'}"))
            print(f"{run_folder.name} is {'' if results[-1]['official'] else 'not '}official under {signed.predicate.id}")
    if json_:
        print(json.dumps({"run_id": run_folder.name, "contracts": results}))
    if not any(result["official"] for result in results):
        complain(f"{run_folder}: not official under any contract that was given")
        raise typer.Exit(4)


def _plan(path: Path) -> bytes:
    file = path / "plan.json" if path.is_dir() else path
    try:
        return file.read_bytes()
    except OSError as error:
        raise UsageError(f"{file}: can't be read ({error.strerror}); give the folder that `deep20ray run` wrote") from None


def _subjects(planned: dict[str, str], named: str | None) -> list[dict[str, str]]:
    """The plan's cohort, subject by subject.

    Raises:
        UsageError: the list isn't the plan's.
    """
    cohort = deep20ray_cohorts.load(named or planned["id"])
    if cohort.digest != planned["sha256"]:
        raise UsageError(f"cohort {named or planned['id']} isn't the one that the plan was made with; give that one with --cohort")
    return [{"subject_id": each.id, "category": each.category, "subject_sha256": each.trusted.digest} for each in cohort.subjects]


def _named(served: list[str], seen: list[Path], trust: list[Path]) -> dict[str, list[str]]:
    """The names that each role or model may answer under: those that are given, and those that runs have answered under."""
    names: dict[str, list[str]] = defaultdict(list)
    for run in (load_run(path, trust) for path in seen):
        for row in run.tables["roles"].to_pylist():
            who = run.statement.predicate.model.id if row["role"] == "guesser" else row["role"]
            names[who] += row["served_models"]
    for pair in served:
        who, equals, name = pair.partition("=")
        if not who or not equals or not name:
            raise UsageError(f"--served {pair}: write ROLE=NAME or MODEL_ID=NAME, such as oracle=big-model-2026-11-01")
        names[who].append(name)
    return names
