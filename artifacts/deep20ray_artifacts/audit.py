"""The recomputable record: what every role must have been sent, computed from a run's public tables, against what its audits say.

Pure: a checked run in, a report out. What a role was sent in a turn follows from what is published, or, for search results and pages
that the Oracle read, from the private archive alone; then whoever has the archive passes in what it gives. It knows no prompt, no
provider and no key. A report says that a record is consistent, not that it is true: a producer attests to itself.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from enum import StrEnum
from typing import Any

from deep20ray.actions import Ask, Guess
from deep20ray.answers import Role, Token
from deep20ray.canonical import Digest, sha256
from deep20ray_artifacts import forms, strict_json
from deep20ray_artifacts.redaction import RedactedField
from deep20ray_artifacts.replay import Row
from deep20ray_artifacts.verify import SealedRun

_TOOLS = ("search", "pages")
"""Calls that no model answers, and no prompt belongs to; a later search's name begins with ``search-``."""


@dataclass(frozen=True, slots=True)
class CallId:
    """One call, as the tables name it."""

    trial: str
    attempt: int
    turn: int
    call: str
    ask: int

    @classmethod
    def of(cls, row: Row) -> "CallId":
        """From a row of ``audits``."""
        return cls(row["trial_id"], row["attempt"], row["turn"], row["call"], row["ask"])


@dataclass(frozen=True, slots=True)
class Recomputed:
    """What the private archive gives for one call; ``request`` is None where no request was made, or none can be computed."""

    message: Digest
    request: Digest | None


class Fault(StrEnum):
    """What can be wrong with a call's record."""

    MESSAGE = "it was sent another message than it may have seen"
    REQUEST = "its request isn't the one that its message, prompt and settings give"
    UNEXPECTED = "it was called, and the rules don't call it there"
    PROMPT = "it was sent under another prompt than the run's"
    MODEL = "it was asked of another model than the run's"
    MISSING = "the rules require the call, and no audit of it is kept"
    ORDER = "its evidence isn't in the one order that says nothing, by address and then by digest"
    ARCHIVE = "the private archive doesn't hold it"


@dataclass(frozen=True, slots=True)
class Finding:
    """One fault, and where. ``attempt`` and ``ask`` are None for a call that isn't there."""

    role: str
    trial: str
    turn: int
    call: str
    attempt: int | None
    ask: int | None
    fault: Fault

    @property
    def line(self) -> str:
        """For people."""
        made = "" if self.attempt is None else f" (attempt {self.attempt}, ask {self.ask})"
        return f"trial {self.trial[:12]}, turn {self.turn}, {self.call}{made}: {self.fault}"


@dataclass(slots=True)
class RoleCounts:
    """Calls of one role."""

    calls: int = 0
    checked: int = 0
    """Whose message was computed again and is the recorded one."""
    archive_only: int = 0
    """Whose message can be computed with the private archive alone."""
    redacted: int = 0
    """Whose message held a field that was redacted since."""
    requests_checked: int = 0
    """Whose wire request was computed again too, which takes the archive."""
    missing: int = 0
    """That the rules require and no audit is kept of; not among ``calls``."""
    wrong: int = 0
    """Whose record contradicts what is published."""


@dataclass(frozen=True, slots=True)
class AuditReport:
    """What an audit of a run found."""

    run_id: str
    statement_sha256: str
    with_archive: bool
    roles: Mapping[str, RoleCounts]
    findings: tuple[Finding, ...]
    elsewhere: Mapping[str, int]
    """By run, how many answers come from it: who gave them was asked there, and is covered by that run's own audit."""

    @property
    def total(self) -> RoleCounts:
        """Over all roles."""
        return RoleCounts(**{each.name: sum(getattr(role, each.name) for role in self.roles.values()) for each in fields(RoleCounts)})

    @property
    def contradicted(self) -> bool:
        """Whether any call's record is wrong."""
        return self.total.wrong > 0

    @property
    def complete(self) -> bool:
        """Whether every required call's audit is there and none is wrong: what an official run needs."""
        return not self.findings

    def document(self) -> dict[str, Any]:
        """As JSON."""
        return {
            "run_id": self.run_id,
            "statement_sha256": self.statement_sha256,
            "with_archive": self.with_archive,
            "complete": self.complete,
            "roles": {role: asdict(counts) for role, counts in self.roles.items()},
            "elsewhere": dict(self.elsewhere),
            "findings": [asdict(finding) | {"fault": finding.fault.value} for finding in self.findings],
        }


def audit_run(run: SealedRun, archive: Mapping[CallId, Recomputed] | None = None) -> AuditReport:
    """The audit of a run whose files, tables and records were checked.

    Args:
        archive: what the private archive gives, call by call; None without it.
    """
    rows = {name: run.tables[name].to_pylist() for name in ("run", "roles", "subjects", "trials", "turns", "evidence", "audits")}
    expected = Expected.of(rows, run.plan, () if run.redaction is None else run.redaction.redacted)
    counts = {str(role): RoleCounts() for role in Role}
    findings: list[Finding] = []
    kept: set[tuple[str, int, str]] = set()
    for row in rows["audits"]:
        own, role = counts[role_of(row["call"])], role_of(row["call"])
        own.calls += 1
        place = (row["trial_id"], row["turn"], row["call"])
        if row["state"] == "terminal" and row["request_sha256"] is not None:
            kept.add(place)
        faults = list(_faults(row, expected, archive))
        findings += [Finding(role, *place, row["attempt"], row["ask"], fault) for fault in faults]
        own.wrong += bool(faults)
        if faults:
            continue
        public = expected.messages[place]
        if archive is not None or isinstance(public, str):
            own.checked += 1
            own.requests_checked += archive is not None and row["request_sha256"] is not None
        else:
            own.archive_only += public is _ARCHIVED
            own.redacted += public is _REDACTED
    for trial, turn in _disordered(rows["evidence"], run):
        counts["oracle"].wrong += 1
        findings.append(Finding("oracle", trial, turn, "evidence", None, None, Fault.ORDER))
    for trial, turn, call in expected.required:
        if (trial, turn, call) not in kept:
            counts[role_of(call)].missing += 1
            findings.append(Finding(role_of(call), trial, turn, call, None, None, Fault.MISSING))
    run_id = run.statement.predicate.run_id
    elsewhere = Counter(row["source_run"] for row in rows["turns"] if row["source_run"] not in (None, run_id))
    return AuditReport(run_id, run.statement_sha256, archive is not None, counts, tuple(findings), dict(sorted(elsewhere.items())))


def _disordered(evidence: Sequence[Row], run: SealedRun) -> Iterator[tuple[str, int]]:
    """Turns whose evidence is numbered in another order than (address, digest of the excerpt), which could say something."""
    redacted = {(field.trial_id, field.turn) for field in (run.redaction.redacted if run.redaction else ()) if field.table == "evidence"}
    items: dict[tuple[str, int], list[Row]] = defaultdict(list)
    for row in sorted(evidence, key=lambda row: row["number"]):
        items[row["trial_id"], row["turn"]].append(row)
    for place, own in items.items():
        keys = [(row["url"], sha256(row["excerpt"].encode())) for row in own]
        if place not in redacted and keys != sorted(set(keys)):
            yield place


def role_of(call: str) -> str:
    """The role that a kind of call belongs to."""
    return call if call in set(Role) else str(Role.ORACLE)


def is_tool(call: str) -> bool:
    """Whether a kind of call asks a search back-end or the web, not a model."""
    return call.partition("-")[0] in _TOOLS


def _faults(row: Row, expected: "Expected", archive: Mapping[CallId, Recomputed] | None) -> Iterator[Fault]:
    """What is wrong with one call's row."""
    public = expected.messages.get((row["trial_id"], row["turn"], row["call"]))
    if public is None:
        yield Fault.UNEXPECTED
        return
    role = expected.roles[role_of(row["call"])]
    if row["prompt_sha256"] != (None if is_tool(row["call"]) else role["prompt_sha256"]):
        yield Fault.PROMPT
    if row["requested_model"] not in ((None,) if is_tool(row["call"]) else (None, role["requested_model"])):
        yield Fault.MODEL
    given = None if archive is None else archive.get(CallId.of(row))
    if isinstance(public, str) and public != row["message_sha256"]:
        yield Fault.MESSAGE
    elif archive is not None and given is None:
        yield Fault.ARCHIVE
    elif given is not None and given.message != row["message_sha256"]:
        yield Fault.MESSAGE
    if given is not None and row["request_sha256"] is not None and given.request != row["request_sha256"]:
        yield Fault.REQUEST


class _NotPublic:
    """A message that what is public doesn't give."""


_ARCHIVED = _NotPublic()
"""Only the private archive gives it."""
_REDACTED = _NotPublic()
"""A part of it was redacted since."""
_Place = tuple[str, int, str]


@dataclass(frozen=True, slots=True)
class Expected:
    """Every call that may stand in a run's audits, by (trial, turn, call), with its message's digest where what is public gives it."""

    roles: Mapping[str, Row]
    messages: Mapping[_Place, Digest | _NotPublic]
    required: Sequence[_Place]

    @classmethod
    def of(cls, rows: Mapping[str, Sequence[Row]], plan: bytes, redacted: Iterable[RedactedField] = ()) -> "Expected":
        """From the tables."""
        gone = _Gone.of(redacted)
        search = _Search.of(rows["run"][0], plan)
        subjects = {row["subject_id"]: row for row in rows["subjects"]}
        turns: dict[str, list[Row]] = defaultdict(list)
        for row in rows["turns"]:
            turns[row["trial_id"]].append(row)
        evidence: dict[tuple[str, int], list[Row]] = defaultdict(list)
        for row in sorted(rows["evidence"], key=lambda row: row["number"]):
            evidence[row["trial_id"], row["turn"]].append(row)
        messages: dict[_Place, Digest | _NotPublic] = {}
        required: list[_Place] = []
        for trial in rows["trials"]:
            own = turns[trial["trial_id"]]
            about = forms.subject(subjects[trial["subject_id"]])
            for turn, view in enumerate(_views(trial, subjects[trial["subject_id"]]["category"], own, gone), start=1):
                place = (trial["trial_id"], turn)
                calls: dict[str, Digest | _NotPublic] = {"guesser": view}
                if turn <= len(own):
                    needed = {"guesser"} | _answered(search, about, own[turn - 1], evidence[place], calls)
                    hidden = gone.hides(place, own[turn - 1]["kind"])
                    calls |= {call: _REDACTED for call, known in calls.items() if call in hidden and isinstance(known, str)}
                    required += [(*place, call) for call in sorted(needed)]
                else:
                    # The turn at which an unfinished trial stopped: its action isn't published.
                    calls |= dict.fromkeys(("validator", *_ORACLES, "reviewer", "judge"), _ARCHIVED)
                messages |= {(*place, call): message for call, message in calls.items()}
        return cls({row["role"]: row for row in rows["roles"]}, messages, required)


_SEARCHES = ("search", *(f"search-{number}" for number in range(2, 11)))
_ORACLES = ("queries", *_SEARCHES, "pages", "oracle")


@dataclass(frozen=True, slots=True)
class _Gone:
    """Where something was redacted: turns whose action, and turns whose evidence, isn't whole any more."""

    actions: frozenset[tuple[str, int]]
    evidence: frozenset[tuple[str, int]]

    @classmethod
    def of(cls, redacted: Iterable[RedactedField]) -> "_Gone":
        fields = list(redacted)
        return cls(*(frozenset((each.trial_id, each.turn) for each in fields if each.table == table) for table in ("turns", "evidence")))

    def hides(self, place: tuple[str, int], kind: str) -> frozenset[str]:
        """The calls of a turn, besides its Guesser's, whose messages can't be computed any more."""
        if place in self.actions:
            return frozenset({"validator"} if kind == "guess" else {*_ORACLES, "reviewer", "judge"})
        return frozenset({"reviewer", "judge"} if place in self.evidence else ())


def _views(trial: Row, category: str, turns: Sequence[Row], gone: _Gone) -> Iterator[Digest | _NotPublic]:
    """The Guesser's view at each turn, and at the one that an unfinished trial stopped in. A redacted action hides all later views."""
    views, whole = forms.GuesserViews(category, trial["variation"]), True
    for row in turns:
        yield views.digest if whole else _REDACTED
        whole = whole and (row["trial_id"], row["turn"]) not in gone.actions
        match row["kind"]:
            case "ask":
                views.add(forms.exchange(Ask(row["question"]).canonical, row["final_token"]))
            case "guess":
                views.add(forms.exchange(Guess(row["guess_name"], row["guess_description"]).canonical, row["final_token"]))
            case _:
                views.add(forms.REMINDER)
    if trial["status"] != "scored":
        yield views.digest if whole else _REDACTED


def _answered(
    search: "_Search", about: forms.Item, row: Row, evidence: Sequence[Row], calls: dict[str, Digest | _NotPublic]
) -> frozenset[str]:
    """Adds the calls that may have answered a turn's action, and returns those that must have."""
    if row["kind"] == "guess":
        calls["validator"] = forms.validator(about, row["guess_name"], row["guess_description"])
        return frozenset({"validator"})
    if row["kind"] != "ask" or row["source_run"] is not None:
        return frozenset()
    needed = search.calls(about, row["question"], calls)
    for role in ("reviewer", "judge"):
        if row[role] is not None:
            calls[role] = forms.opinion(role, about, row["question"], evidence)
            needed |= {role}
    # An Oracle's UNKNOWN has no Reviewer, and two that agree no Judge; the records were checked for that.
    assert (row["reviewer"] is not None) is Token(row["oracle"]).directional
    return needed


@dataclass(frozen=True, slots=True)
class _Search:
    """How a run's Oracle searched; ``target`` is None where its plan doesn't say."""

    native: bool
    target: int | None

    @classmethod
    def of(cls, run: Row, plan: bytes) -> "_Search":
        said = strict_json.loads(plan).get("search")
        target = said.get("query_target") if isinstance(said, dict) else None
        return cls(run["search_backend"].startswith("native:"), target if type(target) is int and 0 <= target < 100 else None)

    def calls(self, about: forms.Item, question: str, calls: dict[str, Digest | _NotPublic]) -> frozenset[str]:
        """Adds an Oracle's calls, and returns those that must have been made."""
        calls["pages"] = _ARCHIVED
        if self.native:
            calls["oracle"] = _ARCHIVED if self.target is None else forms.research(about, question, max(1, self.target))
            return frozenset({"oracle"})
        calls["oracle"] = _ARCHIVED
        if self.target == 0:
            calls["search"] = forms.own_search(about, question)
            return frozenset({"search", "oracle"})
        calls |= dict.fromkeys(_SEARCHES, _ARCHIVED)
        calls["queries"] = _ARCHIVED if self.target is None else forms.queries(about, question, self.target)
        return frozenset({"oracle"}) if self.target is None else frozenset({"queries", "oracle"})
