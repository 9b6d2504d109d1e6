"""The plan: everything a sweep will do, resolved before its first call. It is public: names and digests, no endpoint, no secret.

A plan is a function of (sweep file, cohort, prompts, prices, the time it was made), so that ``resume`` resolves it again and refuses when
anything differs.
"""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, assert_never

import deep20ray
import deep20ray_cohorts
import deep20ray_prompts
from deep20ray.answers import Policy, Role
from deep20ray.canonical import Digest, canonical, digest_of, sha256
from deep20ray.editions import Edition, edition
from deep20ray.reuse import ADJUDICATORS, Adjudicator, Terms
from deep20ray.score import METHOD
from deep20ray.seeds import TrialId, trial_id, variation_token
from deep20ray.subjects import Cohort, Subject, protocol_version
from deep20ray_cluster.errors import PlanMismatch, SweepError
from deep20ray_cluster.price_list import check_same_list, price_section
from deep20ray_cluster.research import ResearchPolicy
from deep20ray_cluster.reuse import Archive
from deep20ray_cluster.sweep import SUPPORT_ROLES, Account, Contestant, Model, Price, Sweep

TrialKey = tuple[str, TrialId]
"""A trial among all of a sweep's: models with one run seed share their trial ids, so that the run's id belongs to it."""


@dataclass(frozen=True, slots=True)
class PlannedTrial:
    """One (subject, round) of a run."""

    id: TrialId
    run_id: str
    subject: Subject
    round: int
    variation: str

    @property
    def key(self) -> TrialKey:
        """Which trial of the sweep it is."""
        return self.run_id, self.id


@dataclass(frozen=True, slots=True)
class PlannedRun:
    """One model's run."""

    id: str
    contestant: Contestant
    seed: str
    trials: tuple[PlannedTrial, ...]

    @property
    def name(self) -> str:
        """The model's name for people."""
        return self.contestant.name or self.contestant.id


@dataclass(frozen=True, slots=True)
class Plan:
    """A resolved sweep."""

    sweep: Sweep
    edition: Edition
    cohort: Cohort
    policy: Policy
    prompts: Mapping[Role, deep20ray_prompts.Prompt]
    runs: tuple[PlannedRun, ...]
    created_at: str
    document: Mapping[str, Any]
    """What is written and published."""
    archive: Archive | None = None

    @property
    def data(self) -> bytes:
        """The document's canonical bytes."""
        return canonical(self.document)

    @property
    def digest(self) -> Digest:
        """Digest of the bytes."""
        return sha256(self.data)

    @property
    def protocol(self) -> Digest:
        """The protocol version."""
        return protocol_version(self.edition, self.cohort)

    def trials(self) -> Iterator[PlannedTrial]:
        """All trials, models side by side: each model's first trial, then each one's second, and so on."""
        longest = max(len(run.trials) for run in self.runs)
        for index in range(longest):
            for run in self.runs:
                if index < len(run.trials):
                    yield run.trials[index]


def load_cohort(sweep: Sweep, base: Path) -> Cohort:
    """The sweep's cohort; a path is relative to ``base``.

    Raises:
        InvalidCohort: as ``deep20ray_cohorts.load``.
    """
    name = sweep.sweep.cohort
    if name in deep20ray_cohorts.names():
        return deep20ray_cohorts.load(name)
    return deep20ray_cohorts.load(str(base / name))


def resolve(sweep: Sweep, cohort: Cohort, created_at: datetime, prices: Mapping[str, Price] | None = None) -> Plan:
    """Resolves a sweep; ``prices`` are those of its prices file.

    Raises:
        SweepError: settings that don't go together.
        UnknownEdition: the edition isn't defined.
    """
    rules = edition(sweep.sweep.edition)
    policy = sweep.sweep.policy or rules.policies[0]
    if policy not in rules.policies:
        raise SweepError(f"sweep.policy: edition {rules.id} accepts {', '.join(rules.policies)}, not {policy}")
    subjects = _chosen(cohort, sweep.sweep.subjects)
    prompts = _prompts(rules.id, policy, native=sweep.search.kind == "native")
    stamp = created_at.astimezone(UTC).strftime("%Y%m%dT%H%M%SZ")
    protocol = protocol_version(rules, cohort)
    runs = tuple(_run(sweep, contestant, stamp, protocol, subjects, sweep.sweep.rounds or rules.rounds) for contestant in sweep.models)
    created = created_at.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%S.000Z")
    document = {
        "plan_schema": 1,
        "software": f"deep20ray {deep20ray.__version__}",
        "created_at": created,
        "sweep": sweep.sweep.name,
        "simulated": sweep.simulated,
        "edition": {"id": rules.id, "sha256": rules.digest},
        "cohort": {"id": cohort.id, "sha256": cohort.digest, "subjects": _listed(cohort, subjects), "size": len(cohort.subjects)},
        "protocol_version": protocol,
        "policy": policy.value,
        "scoring": METHOD,
        "reuse_policy": sweep.sweep.reuse.value,
        "reuse_archive": None,
        "fetch_policy": fetch_policy(sweep),
        "search": _search(sweep),
        "support": {role.value: role_entry(sweep, sweep.support.of(role), prompts[role]) for role in SUPPORT_ROLES},
        "prices": price_section(sweep, prices or {}, created_at.astimezone(UTC).replace(microsecond=0)),
        "runs": [
            {
                "run_id": run.id,
                "model_id": run.contestant.id,
                "model_name": run.name,
                "run_seed": run.seed,
                "guesser": role_entry(sweep, run.contestant, prompts[Role.GUESSER]),
                "trials": [{"trial_id": trial.id, "subject_id": trial.subject.id, "round": trial.round} for trial in run.trials],
            }
            for run in runs
        ],
    }
    return Plan(sweep, rules, cohort, policy, prompts, runs, created, document)


def _listed(cohort: Cohort, chosen: tuple[Subject, ...]) -> list[str]:
    """The chosen subjects' ids in the cohort's own order, in which they give its digest where they are all of it."""
    return [subject.id for subject in cohort.subjects if subject in chosen]


def with_archive(plan: Plan, archive: Archive) -> Plan:
    """The plan of a sweep that may reuse those earlier answers."""
    return replace(plan, archive=archive, document={**plan.document, "reuse_archive": archive.entry})


def terms_of(plan: Plan) -> Terms:
    """What an answer in this sweep depends on besides its subject and question."""
    support = plan.document["support"]
    return Terms(
        plan.edition.tokens,
        plan.policy,
        {role: Adjudicator(support[role.value]["config_sha256"], support[role.value]["prompt_sha256"]) for role in ADJUDICATORS},
        digest_of(plan.document["search"]),
        plan.document["fetch_policy"],
    )


def search_backend(sweep: Sweep) -> str:
    """The name of the search back-end as it is published."""
    match sweep.search.kind:
        case "simulator":
            return "embedded"
        case "native":
            return f"native:{sweep.accounts[sweep.support.oracle.account].kind}"
        case kind:
            return kind


def fetch_policy(sweep: Sweep) -> str:
    """The name of what is read of the pages that a search finds, as it is published."""
    return "public-pages-v1" if sweep.search.fetch_pages else "search-text-only-v1"


def research_policy(sweep: Sweep) -> ResearchPolicy:
    """How an Oracle comes to its answers."""
    search = sweep.search
    return ResearchPolicy(search.kind == "native", search.query_target, search.max_queries, search.max_results, search.fetch_pages)


def _search(sweep: Sweep) -> dict[str, Any]:
    """What is published of the search: all that shapes what is found, and of the endpoint its digest."""
    search, oracle = sweep.search, sweep.accounts[sweep.support.oracle.account]
    return {
        "backend": search_backend(sweep),
        "tool": oracle.anthropic_search if search.kind == "native" and oracle.kind == "anthropic" else None,
        "query_target": search.query_target,
        "max_queries": search.max_queries,
        "max_results": search.max_results,
        "fetch_pages": search.fetch_pages,
        "page_chars": search.page_chars,
        "page_seconds": search.page_seconds,
        "excluded_domains": sorted(search.excluded_domains),
        "loopback_pages": search.allow_loopback,
        "keyless": search.kind == "tavily" and search.api_key is None,
        "endpoint_sha256": _endpoint(search.base_url),
    }


def role_entry(sweep: Sweep, model: Model, prompt: deep20ray_prompts.Prompt) -> dict[str, Any]:
    """One role's configuration as it is published, with a digest over all of it."""
    account = sweep.accounts[model.account]
    sampling = {key: value for key, value in (("temperature", model.temperature), ("top_p", model.top_p)) if value is not None}
    entry: dict[str, Any] = {
        "provider": account.kind,
        "endpoint_sha256": _endpoint(account.base_url),
        "requested_model": model.model,
        "effort": model.effort,
        "sampling": sampling,
        "max_output_tokens": model.max_output_tokens,
        "output_limit_field": account.output_limit_field,
        "send_seed": model.send_seed,
        **_dialect(account, model),
        "prompt_revision": prompt.revision,
        "prompt_sha256": prompt.digest,
    }
    return entry | {"config_sha256": digest_of(entry)}


def _dialect(account: Account, model: Model) -> dict[str, Any]:
    """What a kind of account has of its own and what shapes its replies; nothing for most."""
    match account.kind:
        case "anthropic":
            return {"dialect": {"version": account.anthropic_version, "thinking": model.thinking}}
        case "openrouter":
            return {"dialect": {"only": list(account.upstreams), "allow_fallbacks": False, "require_parameters": True}}
        case "openai-chat" | "openai-responses" | "gemini" | "simulator":
            return {}
        case _:
            assert_never(account.kind)


def check_same(planned: bytes, resolved: Plan) -> None:
    """Refuses a folder whose plan is not what its sweep file resolves to now.

    Raises:
        PlanMismatch: naming the first entries that differ.
    """
    if planned == resolved.data:
        return
    try:
        before = json.loads(planned)
    except (ValueError, RecursionError):
        raise PlanMismatch("plan.json is not JSON; restore it from a copy") from None
    check_same_list(before, resolved.document)
    found = sorted(_differences(before, json.loads(resolved.data), ""))
    names = [f"{name}: {_shown(old)} then, {_shown(new)} now" for name, old, new in found[:5]]
    more = f"; and {len(found) - 5} more" if len(found) > 5 else ""
    what = f"{'; '.join(names)}{more}"
    raise PlanMismatch(
        f"the plan has changed since the sweep began ({what}); use the version and files it began with, or start a new sweep"
    )


def _differences(before: Any, after: Any, at: str) -> Iterator[tuple[str, str, str]]:
    if isinstance(before, dict) and isinstance(after, dict):
        for key in before.keys() | after.keys():
            yield from _differences(before.get(key), after.get(key), f"{at}.{key}" if at else key)
    elif isinstance(before, list) and isinstance(after, list) and len(before) == len(after):
        for index, (old, new) in enumerate(zip(before, after, strict=True)):
            yield from _differences(old, new, f"{at}[{index}]")
    elif before != after:
        yield at or "everything", json.dumps(before, ensure_ascii=False), json.dumps(after, ensure_ascii=False)


def _shown(value: str) -> str:
    return value if len(value) <= 60 else f"{value[:59]}…"


def _prompts(edition_id: str, policy: Policy, *, native: bool) -> dict[Role, deep20ray_prompts.Prompt]:
    try:
        return {
            role: deep20ray_prompts.load(
                role.value,
                edition_id,
                None if role in (Role.GUESSER, Role.VALIDATOR) else policy.value,
                variant="native" if native and role is Role.ORACLE else None,
            )
            for role in Role
        }
    except deep20ray_prompts.PromptError as error:
        raise SweepError(f"prompts: {error}") from None


def _endpoint(base_url: str | None) -> str | None:
    # A private gateway's address is nobody's business; its digest still tells two endpoints apart.
    return None if base_url is None else sha256(base_url.encode())


def _chosen(cohort: Cohort, wanted: tuple[str, ...] | None) -> tuple[Subject, ...]:
    if wanted is None:
        return cohort.subjects
    by_id = {subject.id: subject for subject in cohort.subjects}
    missing = [id_ for id_ in wanted if id_ not in by_id]
    if missing or not wanted or len(set(wanted)) != len(wanted):
        raise SweepError(f"sweep.subjects: {missing or list(wanted)} can't be chosen from cohort {cohort.id}, which has {', '.join(by_id)}")
    return tuple(by_id[id_] for id_ in wanted)


def _run(sweep: Sweep, contestant: Contestant, stamp: str, protocol: Digest, subjects: tuple[Subject, ...], rounds: int) -> PlannedRun:
    seed = contestant.seed or sweep.sweep.seed
    tail = digest_of({"sweep": sweep.sweep.name, "model": contestant.id, "seed": seed, "protocol": protocol, "at": stamp})[:12]
    run_id = f"{stamp}-{contestant.id}-{tail}"
    trials = tuple(
        PlannedTrial(trial_id(protocol, seed, subject.id, round_), run_id, subject, round_, variation_token(seed, round_))
        for round_ in range(1, rounds + 1)
        for subject in subjects
    )
    return PlannedRun(run_id, contestant, seed, trials)
