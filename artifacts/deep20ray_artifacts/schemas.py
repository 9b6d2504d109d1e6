"""The public tables of a run: names, columns, types. The closed list; a changed column is a new ``ARTIFACT_SCHEMA``.

One file per table, Arrow IPC file format, uncompressed. Times are UTC milliseconds, money is integer micro-dollars, null where
unknown, digests are 64 lower-case hex digits. Nothing private has a column here: no prompt, reasoning, statement, trace, call id or
credential.
"""

import hashlib
from collections.abc import Mapping
from types import MappingProxyType

import pyarrow as pa

from deep20ray.canonical import Digest

ARTIFACT_SCHEMA = "1"
_SEARCHES = ("search", *(f"search-{number}" for number in range(2, 11)))
CALLS = ("guesser", "queries", *_SEARCHES, "pages", "oracle", "reviewer", "judge", "validator")
"""The kinds of call, in the order of a turn. A question's second search is ``search-2``, and so on."""
ADJUDICATION_CALLS = frozenset(CALLS) - {"guesser", "validator"}
"""Those that answer a question."""

_TIME = pa.timestamp("ms", tz="UTC")


def _table(**columns: pa.DataType | tuple[pa.DataType, bool]) -> pa.Schema:
    """A schema; a column is required unless it is given as (type, True)."""
    fields = [
        pa.field(name, spec[0], nullable=True) if isinstance(spec, tuple) else pa.field(name, spec, nullable=False)
        for name, spec in columns.items()
    ]
    return pa.schema(fields)


def _maybe(type_: pa.DataType) -> tuple[pa.DataType, bool]:
    return (type_, True)


_RUN = _table(
    run_id=pa.string(),
    sweep=pa.string(),
    edition=pa.string(),
    cohort=pa.string(),
    cohort_sha256=pa.string(),
    protocol_version=pa.string(),
    policy=pa.string(),
    run_seed=pa.string(),
    model_id=pa.string(),
    model_name=pa.string(),
    simulated=pa.bool_(),
    status=pa.string(),  # complete | incomplete
    planned_trials=pa.int32(),
    scored_trials=pa.int32(),
    started_at=_TIME,
    completed_at=_maybe(_TIME),  # last terminal event; null unless complete
    plan_sha256=pa.string(),
    search_backend=pa.string(),
    fetch_policy=pa.string(),
    reuse_policy=pa.string(),
    software=pa.string(),
)

_ROLES = _table(
    role=pa.string(),
    provider=pa.string(),
    requested_model=pa.string(),
    effort=_maybe(pa.string()),
    sampling=pa.string(),  # canonical JSON of the sampling settings that were configured, "{}" for none
    max_output_tokens=pa.int32(),
    prompt_revision=pa.string(),
    prompt_sha256=pa.string(),
    config_sha256=pa.string(),
    served_models=pa.list_(pa.field("item", pa.string(), nullable=False)),
)

_SUBJECTS = _table(
    subject_id=pa.string(),
    name=pa.string(),
    aliases=pa.list_(pa.field("item", pa.string(), nullable=False)),
    description=pa.string(),
    category=pa.string(),
    reference=pa.string(),
    subject_sha256=pa.string(),  # digest of what adjudicators were told
)

_TRIALS = _table(
    trial_id=pa.string(),
    subject_id=pa.string(),
    round=pa.int32(),
    variation=pa.string(),
    status=pa.string(),  # scored | infrastructure | unfinished
    success=_maybe(pa.bool_()),
    terminal_reason=_maybe(pa.string()),
    counted_questions=_maybe(pa.int32()),
    score=_maybe(pa.int32()),
    turns=pa.int32(),
    asks=pa.int32(),
    guesses=pa.int32(),
    rejected_guesses=pa.int32(),
    repeated_guesses=pa.int32(),
    violations=pa.int32(),
    counted_penalties=pa.int32(),
    unknown_answers=pa.int32(),
    degenerate_questions=pa.int32(),
    attempts=pa.int32(),
    cause=_maybe(pa.string()),  # why a trial is not scored
    started_at=_maybe(_TIME),
    completed_at=_maybe(_TIME),
    cost_microusd=_maybe(pa.int64()),  # terminal attempt, all roles; null if any part is unknown
    guesser_cost_microusd=_maybe(pa.int64()),
    reused_answers=pa.int32(),  # questions whose answer was given before
    adjudication_cost_microusd=_maybe(pa.int64()),  # of cost_microusd, what answering questions cost
    fresh_adjudication_cost_microusd=_maybe(pa.int64()),  # the same, had every reused answer cost what it cost at its source
    duration_ms=_maybe(pa.int64()),
)

_TURNS = _table(
    trial_id=pa.string(),
    turn=pa.int32(),
    kind=pa.string(),  # ask | guess | violation
    counted=pa.bool_(),
    counted_questions=pa.int32(),  # after this turn
    question=_maybe(pa.string()),
    guess_name=_maybe(pa.string()),
    guess_description=_maybe(pa.string()),
    final_token=_maybe(pa.string()),  # null for a violation
    path=_maybe(pa.string()),  # oracle_unknown | agreed | judged
    oracle=_maybe(pa.string()),
    oracle_basis=_maybe(pa.string()),
    reviewer=_maybe(pa.string()),
    reviewer_basis=_maybe(pa.string()),
    judge=_maybe(pa.string()),
    judge_basis=_maybe(pa.string()),
    verdict=_maybe(pa.string()),
    degenerate=pa.bool_(),
    repeated=pa.bool_(),  # the same canonical action stood earlier in this trial
    violation_kind=_maybe(pa.string()),
    source_run=_maybe(pa.string()),  # where a reused answer, and its evidence, comes from; null for a fresh one
    source_trial=_maybe(pa.string()),
    source_turn=_maybe(pa.int32()),
    source_at=_maybe(_TIME),  # when the source's turn was completed
    source_policy=_maybe(pa.string()),  # trial | run | sweep | archive: the narrowest policy that reaches the source
    source_cost_microusd=_maybe(pa.int64()),  # what it cost there to answer
    disputed=pa.bool_(),  # answers to this question disagree, as far as was known when the run was sealed
    completed_at=_TIME,
)

_EVIDENCE = _table(
    trial_id=pa.string(),
    turn=pa.int32(),
    number=pa.int32(),
    url=pa.string(),
    excerpt=pa.string(),
    kind=pa.string(),  # excerpt | summary
    verified=pa.bool_(),
    retrieved_at=_TIME,
    text_sha256=pa.string(),  # of the text that the excerpt was found in, the tool's or the page's; of no text for a summary
)

_CALL = {
    "trial_id": pa.string(),
    "attempt": pa.int32(),
    "turn": pa.int32(),
    "call": pa.string(),  # one of CALLS
    "ask": pa.int32(),  # from 0; one more each time the call was made again: a byte-equal re-ask, after a loss, after a stop
    "state": pa.string(),  # terminal | superseded | lost
}

_AUDITS = _table(
    **_CALL,
    prompt_revision=_maybe(pa.string()),
    prompt_sha256=_maybe(pa.string()),
    message_sha256=pa.string(),
    request_sha256=_maybe(pa.string()),
    requested_model=_maybe(pa.string()),
    served_model=_maybe(pa.string()),
    fingerprint=_maybe(pa.string()),
    seed_sent=pa.bool_(),
    outcome=pa.string(),
    wire_tries=pa.int32(),
    latency_ms=_maybe(pa.int64()),
)

_USAGE = _table(
    **_CALL,
    input_fresh=_maybe(pa.int64()),
    input_cache_read=_maybe(pa.int64()),
    input_cache_write_5m=_maybe(pa.int64()),
    input_cache_write_1h=_maybe(pa.int64()),
    output_visible=_maybe(pa.int64()),
    output_reasoning=_maybe(pa.int64()),
    searches=pa.int64(),
    pages=pa.int64(),
    cost_microusd=_maybe(pa.int64()),
)

_VIOLATIONS = _table(
    trial_id=pa.string(),
    turn=pa.int32(),
    kind=pa.string(),
    counted=pa.bool_(),
    finish_reason=_maybe(pa.string()),
    text=_maybe(pa.string()),  # the model's exact visible text; null where there was none
)

_REPAIRS = _table(
    **_CALL,
    cause=pa.string(),
    cost_microusd=_maybe(pa.int64()),
)

_SOURCES = _table(  # one row per run that reused answers come from
    source_run=pa.string(),
    source_policy=pa.string(),  # run | sweep | archive; a trial's own answers are its run's
    statement_sha256=_maybe(pa.string()),  # of an archived run, as the plan names it
    answers=pa.int32(),  # different turns there
    hits=pa.int32(),  # turns here
    disputed=pa.int32(),  # of the hits
    cost_microusd=_maybe(pa.int64()),  # what the hits would have cost
    first_at=_TIME,
    last_at=_TIME,
)

_CHAIN = _table(
    seq=pa.int64(),
    event_sha256=pa.string(),
)

TABLES: Mapping[str, pa.Schema] = MappingProxyType(
    {
        "run": _RUN,
        "roles": _ROLES,
        "subjects": _SUBJECTS,
        "trials": _TRIALS,
        "turns": _TURNS,
        "evidence": _EVIDENCE,
        "audits": _AUDITS,
        "usage": _USAGE,
        "violations": _VIOLATIONS,
        "repairs": _REPAIRS,
        "sources": _SOURCES,
        "chain": _CHAIN,
    }
)
"""Every public table of a run, by name; the file is ``<name>.arrow``."""


def schema_digest(schema: pa.Schema) -> Digest:
    """Digest of a schema's column names, types and nullability, equal in every pyarrow version."""
    text = "\n".join(f"{field.name}: {field.type}{'' if field.nullable else ' not null'}" for field in schema)
    return Digest(hashlib.sha256(text.encode()).hexdigest())
