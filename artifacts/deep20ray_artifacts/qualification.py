"""Whether a verified run is official: small policies, each a few clauses, over one run and one contract.

``check`` says of every clause whether it holds, so that nobody has to guess why a run isn't official; ``qualify`` gives an ``Official``,
which is made nowhere else, or nothing. Pure; a run must equal one contract in every field, not several in some.
"""

from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from deep20ray.answers import Role
from deep20ray.canonical import canonical, digest_of
from deep20ray.editions import edition
from deep20ray_artifacts import strict_json
from deep20ray_artifacts.audit import AuditReport, audit_run, is_tool, role_of
from deep20ray_artifacts.contract import Contract, GuesserTerms, RoleTerms
from deep20ray_artifacts.documents import Signed
from deep20ray_artifacts.keys import TrustedKey
from deep20ray_artifacts.replay import Row
from deep20ray_artifacts.verify import VerifiedRun

_DELIVERED = frozenset({"completed", "refused", "truncated", "empty"})


@dataclass(frozen=True, slots=True)
class Clause:
    """One thing that must hold, whether it does, and what was found if it doesn't."""

    name: str
    holds: bool
    found: str = ""


@dataclass(frozen=True, slots=True)
class Candidate:
    """A run that may be official: verified, and audited from its own tables."""

    run: VerifiedRun
    audit: AuditReport
    throwaway: bool
    """Whether the key that signed it is good for simulated runs alone."""
    row: Row
    roles: Mapping[str, Row]
    subjects: Sequence[Row]
    audits: Sequence[Row]
    plan: Mapping[str, Any]

    @classmethod
    def of(cls, run: VerifiedRun, keys: Sequence[TrustedKey], audit: AuditReport | None = None) -> "Candidate":
        """``keys`` are those that it was verified with; ``audit`` is the run's public one, if it has been made."""
        tables = {name: run.tables[name].to_pylist() for name in ("run", "roles", "subjects", "audits")}
        throwaway = any(key.throwaway for key in keys if key.keyid == run.keyid)
        roles = {row["role"]: row for row in tables["roles"]}
        plan = strict_json.loads(run.plan)
        return cls(run, audit or audit_run(run), throwaway, tables["run"][0], roles, tables["subjects"], tables["audits"], plan)


Policy = Callable[[Candidate, Contract], Iterator[Clause]]


@dataclass(frozen=True, slots=True)
class Official:
    """A run that equals a contract. Only ``qualify`` makes one."""

    run: VerifiedRun
    contract: Signed[Contract]


def qualify(candidate: Candidate, contracts: Sequence[Signed[Contract]]) -> Official | None:
    """The run as official under the first contract that it equals in every field; None if there is none."""
    for contract in contracts:
        if all(clause.holds for clause in check(candidate, contract.predicate)):
            return Official(candidate.run, contract)
    return None


def check(candidate: Candidate, contract: Contract) -> tuple[Clause, ...]:
    """Every clause."""
    return tuple(clause for policy in _POLICIES for clause in policy(candidate, contract))


def _signed(candidate: Candidate, _: Contract) -> Iterator[Clause]:
    yield Clause("signed by a lasting key", not candidate.throwaway, "a throwaway key, good for simulated runs alone")


def _real(candidate: Candidate, _: Contract) -> Iterator[Clause]:
    simulated = candidate.run.statement.predicate.simulated or any(row["provider"] == "simulator" for row in candidate.roles.values())
    yield Clause("played by real models", not simulated, "simulated")


def _complete(candidate: Candidate, _: Contract) -> Iterator[Clause]:
    row = candidate.row
    yield Clause("complete", row["status"] == "complete", f"{row['scored_trials']} of {row['planned_trials']} trials are scored")


def _audited(candidate: Candidate, _: Contract) -> Iterator[Clause]:
    total = candidate.audit.total
    yield Clause("every required audit is kept", total.missing == 0, f"{total.missing} are missing")
    yield Clause("no audit contradicts the record", total.wrong == 0, f"{total.wrong} do")


def _game(candidate: Candidate, contract: Contract) -> Iterator[Clause]:
    predicate, row = candidate.run.statement.predicate, candidate.row
    yield _equal("edition", predicate.edition, contract.edition)
    # The rules of an edition never change here; a contract signed under others must not pass for these.
    yield _equal("game rules", edition(predicate.edition).digest, contract.edition_sha256)
    yield _equal("protocol version", predicate.protocol_version, contract.protocol_version)
    yield _equal("seed", predicate.run_seed, contract.run_seed)
    yield _equal("scoring", predicate.scoring, contract.scoring)
    yield _equal("adjudication policy", predicate.policy, contract.policy)
    yield _equal("cohort", row["cohort"], contract.cohort)
    yield _equal("cohort's digest", predicate.cohort_sha256, contract.cohort_sha256)
    yield _equal("rounds", predicate.limits.rounds, contract.rounds)
    ours = {row["subject_id"]: (row["category"], row["subject_sha256"]) for row in candidate.subjects}
    theirs = {subject.subject_id: (subject.category, subject.subject_sha256) for subject in contract.subjects}
    differing = sorted(id_ for id_ in ours.keys() | theirs.keys() if ours.get(id_) != theirs.get(id_))
    yield Clause("subjects and their descriptions", not differing, f"other: {', '.join(differing)}")


def _research(candidate: Candidate, contract: Contract) -> Iterator[Clause]:
    yield _equal("search back-end", candidate.row["search_backend"], contract.search_backend)
    yield _equal("search settings", digest_of(candidate.plan.get("search")), contract.search_sha256)
    yield _equal("fetch policy", candidate.row["fetch_policy"], contract.fetch_policy)
    yield _equal("reuse policy", candidate.row["reuse_policy"], contract.reuse_policy)


def _roles(candidate: Candidate, contract: Contract) -> Iterator[Clause]:
    guesser = contract.guesser(candidate.run.statement.predicate.model.id)
    yield Clause("Guesser is registered", guesser is not None, f"{candidate.run.statement.predicate.model.id!r} isn't")
    for role in Role:
        terms: RoleTerms | GuesserTerms | None = guesser if role is Role.GUESSER else contract.support.of(role)
        if terms is None:
            continue
        row, told = candidate.roles[role.value], _planned(candidate, role)
        for name in ("provider", "requested_model", "effort", "sampling", "max_output_tokens", "prompt_revision", "prompt_sha256"):
            yield _equal(f"{role.value}: {name}", row[name], getattr(terms, name))
        yield _equal(f"{role.value}: config_sha256", row["config_sha256"], terms.config_sha256)
        # The digest must be that of what the plan publishes, or it could be copied from a contract.
        yield _equal(f"{role.value}: parameters of the plan", told, terms.config_sha256)
        yield from _served(candidate, role, terms)


def _planned(candidate: Candidate, role: Role) -> str | None:
    """The digest of a role's parameters as the plan has them, computed again."""
    plan, run_id = candidate.plan, candidate.run.statement.predicate.run_id
    try:
        runs = {entry["run_id"]: entry["guesser"] for entry in plan["runs"]}
        entry = runs[run_id] if role is Role.GUESSER else plan["support"][role.value]
        return digest_of({name: value for name, value in entry.items() if name != "config_sha256"})
    except (KeyError, TypeError, AttributeError):
        return None


def _served(candidate: Candidate, role: Role, terms: RoleTerms) -> Iterator[Clause]:
    """Who answered: a listed name, the same one throughout, and said with every reply."""
    rows = [row for row in candidate.audits if role_of(row["call"]) == role and not is_tool(row["call"])]
    names = {row["served_model"] for row in rows if row["served_model"] is not None}
    silent = sum(row["served_model"] is None for row in rows if row["outcome"] in _DELIVERED)
    unlisted = sorted(names - set(terms.served_models))
    yield Clause(f"{role.value}: answered under listed names", not unlisted, f"{', '.join(unlisted)}")
    yield Clause(f"{role.value}: no drift within the run", len(names) <= 1, f"{', '.join(sorted(names))}")
    yield Clause(f"{role.value}: every reply says who answered", silent == 0, f"{silent} replies don't")


def _equal(name: str, ours: object, theirs: object) -> Clause:
    return Clause(name, ours == theirs, f"{ours!r} where the contract has {theirs!r}")


_POLICIES: tuple[Policy, ...] = (_signed, _real, _complete, _audited, _game, _research, _roles)


def contract_facts(
    plan: bytes, subjects: Sequence[Mapping[str, str]], contract_id: str, served: Mapping[str, Sequence[str]]
) -> dict[str, Any]:
    """The facts of a contract whose runs are those of a plan, for ``Contract.of``.

    Args:
        plan: a sweep's ``plan.json``.
        subjects: {subject_id, category, subject_sha256} of its cohort's subjects.
        served: names under which a model may answer, by role or, for a Guesser, by model id; without any, the requested one.

    Raises:
        KeyError, TypeError: it is no plan.
    """
    told = strict_json.loads(plan)
    rounds: dict[str, int] = defaultdict(int)
    for trial in told["runs"][0]["trials"]:
        rounds[trial["subject_id"]] += 1
    return {
        "contract_schema": "1",
        "id": contract_id,
        "edition": told["edition"]["id"],
        "edition_sha256": told["edition"]["sha256"],
        "protocol_version": told["protocol_version"],
        "run_seed": told["runs"][0]["run_seed"],
        "scoring": told["scoring"],
        "policy": told["policy"],
        "cohort": told["cohort"]["id"],
        "cohort_sha256": told["cohort"]["sha256"],
        "subjects": [dict(each) for each in subjects if each["subject_id"] in rounds],
        "rounds": max(rounds.values()),
        "search_backend": told["search"]["backend"],
        "search_sha256": digest_of(told["search"]),
        "fetch_policy": told["fetch_policy"],
        "reuse_policy": told["reuse_policy"],
        "support": {role.value: _terms(told["support"][role.value], served, role.value) for role in Role if role is not Role.GUESSER},
        "guessers": [
            {"model_id": run["model_id"], **_terms(run["guesser"], served, run["model_id"])}
            for run in told["runs"]
            if run["run_seed"] == told["runs"][0]["run_seed"]
        ],
    }


def _terms(entry: Mapping[str, Any], served: Mapping[str, Sequence[str]], who: str) -> dict[str, Any]:
    names = ("provider", "requested_model", "effort", "max_output_tokens", "prompt_revision", "prompt_sha256", "config_sha256")
    allowed = list(dict.fromkeys(served.get(who, ()))) or [entry["requested_model"]]
    return {name: entry[name] for name in names} | {"sampling": canonical(entry["sampling"]).decode(), "served_models": allowed}
