"""Makes valid sealed run folders from the public API alone, and lets a test spoil them before they are sealed.

    folder = draft(model_id="model-a", name="Model A").seal(tmp_path)          # unsigned: statement.json
    folder = sealed_run(tmp_path, key, scores={"T-0001": [3, 41, 7]})          # signed:   attestation.dsse.json

Without ``scores`` a run plays six scripted trials (two subjects, three rounds) that end for every terminal reason and hold
violations, rejected and repeated guesses, judged and unknown answers and evidence. With ``scores`` each subject's trials are played
to just those scores. Rows come from the rules: every script is played through ``Game``.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from deep20ray.actions import Ask, Guess, Violation, ViolationKind
from deep20ray.adjudication import Final, decide
from deep20ray.answers import Role, Token, Verdict
from deep20ray.canonical import canonical, digest_of, sha256
from deep20ray.editions import EDITIONS, Edition
from deep20ray.editions import edition as edition_of
from deep20ray.game import Ended, Game
from deep20ray.seeds import trial_id, variation_token
from deep20ray.subjects import Cohort, Subject, TrustedSubject, protocol_version
from deep20ray_artifacts.audit import Expected
from deep20ray_artifacts.chain import head_of
from deep20ray_artifacts.rowdigest import REDACTABLE, all_rows_digests
from deep20ray_artifacts.schemas import ADJUDICATION_CALLS, TABLES, schema_digest
from deep20ray_artifacts.signing import load_private, sign_payload, sign_run
from deep20ray_artifacts.sources import source_rows
from deep20ray_artifacts.statement import PRIVATE_NAMES, Journal, Model, PrivateFile, RunFacts, RunLimits, build_statement, time_text
from deep20ray_artifacts.tables import ARROW_MEDIA_TYPE, FileEntry, build_table, write_plan, write_table
from deep20ray_artifacts.verify import ATTESTATION_NAME, STATEMENT_NAME

COMPLETED_AT = datetime(2026, 12, 1, 9, 30, tzinfo=UTC)
"""When a run's last trial ends, unless a test says otherwise."""

Rows = list[dict[str, Any]]


@dataclass(frozen=True)
class Asked:
    """A question and what each adjudicator said; ``evidence`` is the number of items behind it."""

    question: str
    oracle: Token = Token.YES
    reviewer: Token | None = Token.YES
    judge: Token | None = None
    evidence: int = 0


@dataclass(frozen=True)
class Guessed:
    """A guess and its verdict."""

    name: str
    verdict: Verdict
    description: str = "the one that is meant"


@dataclass(frozen=True)
class Broke:
    """A violation and the text behind it."""

    kind: ViolationKind = ViolationKind.NOT_JSON
    text: str | None = "I think it is a **thing**."


Move = Asked | Guessed | Broke

_UNKNOWN = Asked("Is it famous?", Token.UNKNOWN, None)
_JUDGED = Asked("Is it often seen?", Token.RATHER_YES, Token.RATHER_NO, Token.YES, evidence=3)

SCRIPTS: tuple[tuple[Move, ...], ...] = (
    (
        Asked("Is it real?", evidence=1),
        Broke(),
        _UNKNOWN,
        Guessed("Something else", Verdict.NO),
        _JUDGED,
        Guessed("Something else", Verdict.NO),
        Asked("Is it real?", evidence=2),
        Asked("?", Token.NO, Token.NO),
        Guessed("The subject", Verdict.YES),
    ),
    (*(Asked(f"Is it number {n}?", Token.NO, Token.NO) for n in range(40)), Guessed("Something else", Verdict.NO)),
    tuple(Broke(kind, None if kind is ViolationKind.EMPTY else "{}") for kind in list(ViolationKind)[:5]),
    (Asked("Is it a tool?", Token.RATHER_NO, Token.RATHER_NO, evidence=1), Guessed("A thing or another", Verdict.UNKNOWN)),
    (*(Asked(f"Is it item {n}?", Token.NO, Token.NO) for n in range(40)), Broke(ViolationKind.WRONG_ACTION, '{"action":"ASK"}')),
    (Guessed("The subject", Verdict.YES),),
)
"""The default run: success, limit_exhausted, guesser_protocol_failure (a row of five), validator_unknown, protocol failure at the limit, success at once."""


@dataclass
class RunDraft:
    """A run's rows and facts before sealing; a test may change any of them."""

    rows: dict[str, Rows]
    facts: dict[str, Any]
    plan: bytes
    cohort: Cohort
    files: dict[str, bytes] = field(default_factory=dict)
    """Bytes to stand in a table file's place, listed truthfully in the statement."""

    def __post_init__(self) -> None:
        self._made = self.plan

    def _follow(self) -> None:
        """Makes the plan anew from the rows, unless a test gave it one of its own."""
        if self.plan != self._made:
            return
        self.plan = plan_of(self.facts, self.rows, self.cohort)
        if self.rows["run"][0]["plan_sha256"] == sha256(self._made):
            self.rows["run"][0]["plan_sha256"] = sha256(self.plan)
        self._made = self.plan

    def seal(self, root: Path) -> Path:
        """Writes ``root/RUN_ID`` with every table, the plan and an unsigned statement."""
        folder = root / str(self.facts["run_id"])
        folder.mkdir(parents=True)
        self._follow()
        entries = [write_plan(self.plan, folder)]
        for name in TABLES:
            path = folder / f"{name}.arrow"
            if path.name in self.files:
                data = self.files[path.name]
                path.write_bytes(data)
                entries.append(
                    FileEntry(path.name, len(data), len(self.rows[name]), sha256(data), schema_digest(TABLES[name]), ARROW_MEDIA_TYPE)
                )
            else:
                entries.append(write_table(build_table(name, self.rows[name]), path))
        digests = all_rows_digests({name: build_table(name, self.rows[name]) for name in REDACTABLE})
        facts = RunFacts.model_validate({"redactable": digests, **self.facts, "plan_sha256": sha256(self.plan)})
        (folder / STATEMENT_NAME).write_bytes(build_statement(facts, entries))
        return folder


def sealed_run(root: Path, key_path: Path, **parameters: Any) -> Path:
    """A signed run folder; ``parameters`` as for ``draft``."""
    folder = recorded(draft(**parameters)).seal(root)
    sign_run(folder, key_path)
    return folder


def recorded(run: RunDraft) -> RunDraft:
    """The draft settled, with the message digests that its rows give, where a test hasn't put in others; to be called last."""
    settle(run.rows)
    full = {name: build_table(name, rows).to_pylist() for name, rows in run.rows.items()}
    messages = Expected.of(full, run.plan).messages
    for row in run.rows["audits"]:
        if row["message_sha256"] == UNRECORDED:
            place = (row["trial_id"], row["turn"], row["call"])
            public = messages.get(place)
            row["message_sha256"] = public if isinstance(public, str) else digest_of(place)
    return run


def reuse(run: RunDraft, turn: int, source: int | Mapping[str, Any], policy: str = "sweep") -> None:
    """Makes the answer of ``rows["turns"][turn]`` a reused one and sums up anew; ``source`` is another row's index, or what to say of it."""
    rows, row = run.rows, run.rows["turns"][turn]
    place = (row["trial_id"], row["turn"])
    for table in ("audits", "usage"):
        rows[table] = [each for each in rows[table] if (each["trial_id"], each["turn"]) != place or each["call"] == "guesser"]
    if isinstance(source, int):
        origin = rows["turns"][source]
        at = (origin["trial_id"], origin["turn"])
        row |= {name: origin[name] for name in ("path", *ANSWERED) if name in origin} | {"final_token": origin["final_token"]}
        rows["evidence"] = [each for each in rows["evidence"] if (each["trial_id"], each["turn"]) != place]
        rows["evidence"] += [{**each, "trial_id": place[0], "turn": place[1]} for each in rows["evidence"] if _place(each) == at]
        narrow = "trial" if at[0] == place[0] else "run"
        cost = sum(each["cost_microusd"] for each in rows["usage"] if _place(each) == at and each["call"] in ADJUDICATION_CALLS)
        source = {"run": run.facts["run_id"], "trial": at[0], "turn": at[1], "at": origin["completed_at"], "policy": narrow}
        source["cost_microusd"] = cost
    row |= {f"source_{name}": value for name, value in source.items()}
    trial = next(each for each in rows["trials"] if each["trial_id"] == place[0])
    hits = [each for each in rows["turns"] if each["trial_id"] == place[0] and each.get("source_run")]
    fresh = answering(rows["usage"], place[0])["adjudication_cost_microusd"]
    trial |= {"reused_answers": len(hits), "adjudication_cost_microusd": fresh}
    trial["fresh_adjudication_cost_microusd"] = fresh + sum(each["source_cost_microusd"] for each in hits)
    rows["run"][0]["reuse_policy"] = policy
    rows["sources"] = source_rows(rows["turns"], {ARCHIVED: digest_of("archived")})
    settle(rows)


ANSWERED = ("oracle", "oracle_basis", "reviewer", "reviewer_basis", "judge", "judge_basis")
UNRECORDED = "0" * 64
"""A message's digest that ``recorded`` fills in."""
ARCHIVED = "20261101T093000Z-model-z-0123456789ab"
"""The run id of an archived run."""


def _place(row: Mapping[str, Any]) -> tuple[str, int]:
    return row["trial_id"], row["turn"]


def force_sign(folder: Path, key_path: Path) -> Path:
    """Signs whatever stands in the folder, unchecked, as a dishonest signer would."""
    payload = (folder / STATEMENT_NAME).read_bytes()
    (folder / ATTESTATION_NAME).write_bytes(sign_payload(payload, load_private(key_path)))
    (folder / STATEMENT_NAME).unlink()
    return folder


def draft(
    *,
    model_id: str = "model-a",
    name: str = "Model A",
    scores: Mapping[str, Sequence[int]] | None = None,
    completed_at: datetime = COMPLETED_AT,
    simulated: bool = True,
    edition: str = "1.1",
    run_seed: str = "seed-1",
    policy: str | None = None,
    cost_microusd: int | None = 1200,
) -> RunDraft:
    """A consistent run.

    Args:
        scores: each subject id's trial scores, the same number for every subject; the failure score is a failed trial.
        completed_at: the last terminal event; the others come a minute apart before it.
        cost_microusd: of every trial; None for unknown.
    """
    rules = edition_of(edition)
    scripts = _scripts(rules, scores)
    cohort = Cohort("test-cohort", tuple(make_subject(subject_id) for subject_id in scripts))
    protocol = protocol_version(rules, cohort)
    rounds = len(next(iter(scripts.values())))
    rows: dict[str, Rows] = {table: [] for table in TABLES}
    started = completed_at - timedelta(minutes=len(scripts) * rounds)
    order = [(subject, round_) for round_ in range(1, rounds + 1) for subject in cohort.subjects]
    for index, (subject, round_) in enumerate(order, start=1):
        identity = {
            "trial_id": trial_id(protocol, run_seed, subject.id, round_),
            "subject_id": subject.id,
            "round": round_,
            "variation": variation_token(run_seed, round_),
        }
        clock = _Clock(started + timedelta(minutes=index - 1), started + timedelta(minutes=index))
        _play(rows, rules, subject.category, identity, scripts[subject.id][round_ - 1], clock, cost_microusd, model_id)
    rows["chain"] = [{"seq": n, "event_sha256": digest_of({"event": n, "run": model_id})} for n in range(1, 8)]
    facts = {
        "run_id": f"{completed_at:%Y%m%dT%H%M%SZ}-{model_id}-{digest_of([model_id, run_seed, time_text(completed_at)])[:12]}",
        "sweep": "test-sweep",
        "edition": rules.id,
        "cohort_sha256": cohort.digest,
        "protocol_version": protocol,
        "policy": policy or str(rules.policies[0]),
        "plan_sha256": UNRECORDED,
        "journal": Journal(events=7, head=head_of(row["event_sha256"] for row in rows["chain"])),
        "private": [PrivateFile(name=name, bytes=1, sha256=digest_of(name)) for name in PRIVATE_NAMES],
        "model": Model(id=model_id, provider="openai-chat", requested=f"{model_id}-2026"),
        "run_seed": run_seed,
        "limits": RunLimits(questions=rules.question_limit, failure_score=rules.failure_score, rounds=rounds, subjects=len(scripts)),
        "started_at": time_text(started),
        "completed_at": time_text(completed_at),
        "status": "complete",
        "simulated": simulated,
    }
    rows["subjects"] = [subject_row(subject) for subject in cohort.subjects]
    rows["roles"] = [_role_row(role, model_id) for role in Role]
    settle(rows)
    rows["run"] = [_run_row(facts, name, cohort.id, len(order), started, completed_at)]
    plan = plan_of(facts, rows, cohort)
    facts["plan_sha256"] = rows["run"][0]["plan_sha256"] = sha256(plan)
    return RunDraft(rows, facts, plan, cohort)


SEARCH = {"backend": "searxng", "query_target": 0, "max_queries": 1, "max_results": 5, "fetch_pages": 0, "keyless": False}


def role_entry(row: Mapping[str, Any]) -> dict[str, Any]:
    """A role's settings as a plan has them, by its row."""
    names = ("provider", "requested_model", "max_output_tokens", "prompt_revision", "prompt_sha256")
    entry = {name: row[name] for name in names} | {"effort": row.get("effort"), "sampling": {}}
    return entry | {"config_sha256": digest_of(entry)}


def plan_of(facts: Mapping[str, Any], rows: Mapping[str, Rows], cohort: Cohort) -> bytes:
    """The plan that a sweep would have had, by what it came to."""
    run = rows["run"][0]
    entries = {row["role"]: role_entry(row) for row in rows["roles"]}
    for row in rows["roles"]:
        row["config_sha256"] = entries[row["role"]]["config_sha256"]
    known = facts["edition"] in EDITIONS
    return canonical(
        {
            "plan_schema": 1,
            "software": run["software"],
            "sweep": facts["sweep"],
            "simulated": facts["simulated"],
            "edition": {"id": facts["edition"], "sha256": edition_of(facts["edition"]).digest if known else ""},
            "cohort": {
                "id": run["cohort"],
                "sha256": facts["cohort_sha256"],
                "subjects": [each.id for each in cohort.subjects],
                "size": len(cohort.subjects),
            },
            "protocol_version": facts["protocol_version"],
            "policy": facts["policy"],
            "scoring": "average-then-average-v1",
            "reuse_policy": run["reuse_policy"],
            "fetch_policy": run["fetch_policy"],
            "search": {**SEARCH, "backend": run["search_backend"]},
            "support": {role: entry for role, entry in entries.items() if role != Role.GUESSER},
            "runs": [
                {
                    "run_id": facts["run_id"],
                    "model_id": facts["model"].id,
                    "model_name": run["model_name"],
                    "run_seed": facts["run_seed"],
                    "guesser": entries.get(Role.GUESSER),
                    "trials": [{name: row[name] for name in ("trial_id", "subject_id", "round")} for row in rows["trials"]],
                }
            ],
        }
    )


@dataclass
class _Clock:
    now: datetime
    end: datetime

    def tick(self) -> datetime:
        self.now = min(self.now + timedelta(seconds=1), self.end)
        return self.now


def _scripts(rules: Edition, scores: Mapping[str, Sequence[int]] | None) -> dict[str, tuple[tuple[Move, ...], ...]]:
    if scores is None:
        return {"T-0001": SCRIPTS[:3], "T-0008": SCRIPTS[3:]}
    return {subject: tuple(_to_score(rules, score) for score in wanted) for subject, wanted in scores.items()}


def _to_score(rules: Edition, score: int) -> tuple[Move, ...]:
    asks = [Asked(f"Is it case {n}?", Token.NO, Token.NO, evidence=int(n == 0)) for n in range(min(score, rules.question_limit))]
    return (*asks, Guessed("The subject", Verdict.NO if score > rules.question_limit else Verdict.YES))


def _play(
    rows: dict[str, Rows],
    rules: Edition,
    category: str,
    identity: dict[str, Any],
    script: Sequence[Move],
    clock: _Clock,
    cost: int | None,
    model_id: str,
) -> None:
    """Adds one scored trial: its row, its turns, and what hangs on them."""
    started = clock.now
    game = Game.start(rules, category, identity["variation"])
    turns: Rows = []
    seen: set[str] = set()
    for number, move in enumerate(script, start=1):
        key = {"trial_id": identity["trial_id"], "turn": number}
        before = game.counted
        game, told = _moved(game, move)
        action = told.pop("action", None)
        turn = {**key, **told, "counted": game.counted > before, "counted_questions": game.counted, "repeated": action in seen}
        turn |= {"completed_at": clock.tick(), "disputed": False, "degenerate": isinstance(move, Asked) and Ask(move.question).degenerate}
        seen |= {action} - {None}
        turns.append(turn)
        if isinstance(move, Asked):
            rows["evidence"] += [{**key, **_evidence(n, clock.now)} for n in range(1, move.evidence + 1)]
        elif isinstance(move, Broke):
            rows["violations"].append(
                {**key, "kind": str(move.kind), "counted": turn["counted"], "finish_reason": "stop", "text": move.text}
            )
        for call in _calls(move):
            common = {**key, "attempt": 1, "call": call, "ask": 0, "state": "terminal"}
            rows["audits"].append(common | _audit(common, model_id))
            rows["usage"].append(
                common | {"input_fresh": 300, "output_visible": 20, "searches": int(call == "search"), "pages": 0, "cost_microusd": cost}
            )
    ended = game.needs
    assert isinstance(ended, Ended), "a script plays its trial to the end"
    rows["turns"] += turns
    costs = _shared_out(cost, [row for row in rows["usage"] if row["trial_id"] == identity["trial_id"]])
    rows["trials"].append(
        {
            **identity,
            "status": "scored",
            "success": ended.success,
            "terminal_reason": str(ended.reason),
            "counted_questions": ended.counted,
            "score": ended.score,
            "attempts": 1,
            **_sums(turns),
            "started_at": started,
            "completed_at": clock.end,
            **costs,
            **answering(rows["usage"], identity["trial_id"]),
            "duration_ms": 60_000,
        }
    )


def _shared_out(cost: int | None, usage: Rows) -> dict[str, int | None]:
    """Gives each of a trial's calls its share of what the trial cost: the first the odd rest; unknown stays unknown."""
    if cost is not None:
        for row in usage:
            row["cost_microusd"] = cost // len(usage)
        usage[0]["cost_microusd"] += cost % len(usage)
    return {"cost_microusd": cost, "guesser_cost_microusd": cost and sum(row["cost_microusd"] for row in usage if row["call"] == "guesser")}


_CALL = ("trial_id", "attempt", "turn", "call", "ask", "state")


def settle(rows: Mapping[str, Rows]) -> None:
    """Makes anew what sums up a run's calls: who answered for each role, what each trial cost and lasted, and which calls were made again."""
    for row in rows["roles"]:
        calls = [each for each in rows["audits"] if each["call"] == row["role"] and each["served_model"]]
        row["served_models"] = sorted({each["served_model"] for each in calls})
    again = {tuple(row[name] for name in _CALL): row for row in rows["usage"] if row["state"] != "terminal"}
    causes = {tuple(row[name] for name in _CALL): row["cause"] for row in rows["repairs"]}
    rows["repairs"][:] = [
        dict(zip(_CALL, call, strict=True)) | {"cause": causes.get(call, "transport"), "cost_microusd": row["cost_microusd"]}
        for call, row in again.items()
    ]
    for trial in rows["trials"]:
        trial |= spent(rows["usage"], trial["trial_id"])
        ended = trial["started_at"] and trial["completed_at"]
        trial["duration_ms"] = round((trial["completed_at"] - trial["started_at"]).total_seconds() * 1000) if ended else None


def spent(usage: Rows, trial: str) -> dict[str, int | None]:
    """What a trial's calls cost."""
    own = [row for row in usage if row["trial_id"] == trial and row["state"] == "terminal"]
    total, guesser = ([row["cost_microusd"] for row in own if call in (None, row["call"])] for call in (None, "guesser"))
    return {"cost_microusd": None if None in total else sum(total), "guesser_cost_microusd": None if None in guesser else sum(guesser)}


def answering(usage: Rows, trial: str) -> dict[str, int | None]:
    """What answering questions cost in a trial that reuses nothing."""
    costs = [row["cost_microusd"] for row in usage if row["trial_id"] == trial and row["call"] in ADJUDICATION_CALLS]
    cost = None if None in costs else sum(costs)
    return {"reused_answers": 0, "adjudication_cost_microusd": cost, "fresh_adjudication_cost_microusd": cost}


def _moved(game: Game, move: Move) -> tuple[Game, dict[str, Any]]:
    match move:
        case Asked():
            ask = Ask(move.question)
            decision = decide(move.oracle, move.reviewer, move.judge)
            assert isinstance(decision, Final)
            said = {"oracle": move.oracle, "reviewer": move.reviewer, "judge": move.judge}
            bases = {f"{role}_basis": token and ("evidence" if move.evidence else "knowledge") for role, token in said.items()}
            told = {"kind": "ask", "action": ask.canonical, "question": ask.question, "final_token": decision.token, "path": decision.path}
            return game.after(ask).after(decision.token), {**told, **said, **bases}
        case Guessed():
            guess = Guess(move.name, move.description)
            told = {"kind": "guess", "action": guess.canonical, "guess_name": guess.name, "guess_description": guess.description}
            return game.after(guess).after(move.verdict), {**told, "final_token": move.verdict, "verdict": move.verdict}
        case Broke():
            return game.after(Violation(move.kind)), {"kind": "violation", "violation_kind": str(move.kind)}


def _sums(turns: Rows) -> dict[str, int]:
    kinds = [turn["kind"] for turn in turns]
    return {
        "turns": len(turns),
        "asks": kinds.count("ask"),
        "guesses": kinds.count("guess"),
        "rejected_guesses": sum(turn.get("verdict") == "NO" for turn in turns),
        "repeated_guesses": sum(turn["repeated"] and turn["kind"] == "guess" for turn in turns),
        "violations": kinds.count("violation"),
        "counted_penalties": sum(turn["counted"] and turn["kind"] == "violation" for turn in turns),
        "unknown_answers": sum(turn["kind"] == "ask" and turn["final_token"] == "UNKNOWN" for turn in turns),
        "degenerate_questions": sum(turn["degenerate"] for turn in turns),
    }


def _calls(move: Move) -> list[str]:
    match move:
        case Asked():
            asked = {"oracle": move.oracle, "reviewer": move.reviewer, "judge": move.judge}
            return ["guesser", "search", *(role for role, token in asked.items() if token)]
        case Guessed():
            return ["guesser", "validator"]
        case Broke():
            return ["guesser"]


def _evidence(number: int, moment: datetime) -> dict[str, Any]:
    return {
        "number": number,
        "url": f"https://reference.example/page/{number}",
        "excerpt": f"What the page says, part {number}.",
        "kind": "excerpt",
        "verified": True,
        "retrieved_at": moment,
        "text_sha256": digest_of(number),
    }


def _audit(call: dict[str, Any], model_id: str) -> dict[str, Any]:
    search = call["call"] == "search"
    return {
        "prompt_revision": None if search else f"{call['call']}-1.1-r1",
        "prompt_sha256": None if search else digest_of(f"prompt {call['call']}"),
        "message_sha256": UNRECORDED,
        "request_sha256": digest_of([call["trial_id"], call["turn"], call["call"], "request"]),
        "requested_model": None if search else _model_of(call["call"], model_id),
        "served_model": None if search else _model_of(call["call"], model_id),
        "seed_sent": not search,
        "outcome": "found" if search else "completed",
        "wire_tries": 1,
        "latency_ms": 120,
    }


def make_subject(subject_id: str) -> Subject:
    trusted = TrustedSubject(f"Subject {subject_id}", (f"Alias {subject_id}",), f"The invented subject {subject_id}, not a real one.")
    return Subject(subject_id, "thing", f"https://reference.example/{subject_id}", trusted)


def subject_row(subject: Subject) -> dict[str, Any]:
    return {
        "subject_id": subject.id,
        "name": subject.trusted.canonical_name,
        "aliases": subject.trusted.aliases,
        "description": subject.trusted.description,
        "category": subject.category,
        "reference": subject.reference,
        "subject_sha256": subject.trusted.digest,
    }


def _model_of(role: str, model_id: str) -> str:
    return f"{model_id}-2026" if role == Role.GUESSER else f"support-{role}"


def _role_row(role: Role, model_id: str) -> dict[str, Any]:
    model = _model_of(role, model_id)
    return {
        "role": role,
        "provider": "openai-chat",
        "requested_model": model,
        "sampling": "{}",
        "max_output_tokens": 1024,
        "prompt_revision": f"{role}-1.1-r1",
        "prompt_sha256": digest_of(f"prompt {role}"),
        "config_sha256": digest_of(f"config {role} {model}"),
        "served_models": [model],
    }


def _run_row(facts: dict[str, Any], name: str, cohort: str, trials: int, started: datetime, completed: datetime) -> dict[str, Any]:
    same = ("run_id", "sweep", "edition", "cohort_sha256", "protocol_version", "policy", "run_seed", "simulated", "status", "plan_sha256")
    return {key: facts[key] for key in same} | {
        "cohort": cohort,
        "model_id": facts["model"].id,
        "model_name": name,
        "planned_trials": trials,
        "scored_trials": trials,
        "started_at": started,
        "completed_at": completed,
        "search_backend": "searxng",
        "fetch_policy": "none",
        "reuse_policy": "off",
        "software": "deep20ray 0.1.0",
    }
