"""The audit from public tables: what every role was sent is computed again, and one changed byte, wherever it is planted, is found."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from deep20ray.actions import Ask, Guess
from deep20ray.answers import Token
from deep20ray.canonical import digest_of
from deep20ray.game import Exchange, Reminder, View
from deep20ray.subjects import TrustedSubject
from deep20ray_actors.messages import (
    EvidenceItem,
    GuesserMessage,
    JudgeMessage,
    QueriesMessage,
    ResearchMessage,
    ReviewerMessage,
    SearchMessage,
    ValidatorMessage,
)
from deep20ray_artifacts import forms
from deep20ray_artifacts.audit import AuditReport, Fault, audit_run
from deep20ray_artifacts.keys import load_public
from deep20ray_artifacts.signing import NewKey, sign_run
from deep20ray_artifacts.verify import verify_run
from tests.artifacts import builder

TOLD = TrustedSubject("Door handle", ("handle", "Türgriff"), "What a door is opened by; not the lock.")
ROW = {"name": TOLD.canonical_name, "aliases": list(TOLD.aliases), "description": TOLD.description}
ABOUT = forms.subject(ROW)
QUESTION = 'Is it “round”?\n\u2028"\\'
ITEMS = (EvidenceItem(number=1, url="https://a.example/", excerpt="ä"), EvidenceItem(number=2, url="https://b.example/", excerpt="b\n"))
ROWS = [item.model_dump() | {"kind": "excerpt", "verified": True} for item in ITEMS]
HISTORY = (Exchange("{}", Token.RATHER_NO), Reminder(), Exchange('{"a":1}', Token.NO))


def guesser(category: str, variation: str, history: Sequence[forms.Item]) -> str:
    views = forms.GuesserViews(category, variation)
    for item in history:
        views.add(item)
    return views.digest


WRITTEN = [
    (
        GuesserMessage.of(View("thing", "0123456789ab", HISTORY)),
        guesser("thing", "0123456789ab", [forms.exchange("{}", "RATHER_NO"), forms.REMINDER, forms.exchange('{"a":1}', "NO")]),
    ),
    (GuesserMessage.of(View("thing", "0")), guesser("thing", "0", [])),
    (QueriesMessage.of(TOLD, QUESTION, 2), forms.queries(ABOUT, QUESTION, 2)),
    (SearchMessage.of(TOLD, QUESTION), forms.own_search(ABOUT, QUESTION)),
    (ResearchMessage.of(TOLD, QUESTION, 3), forms.research(ABOUT, QUESTION, 3)),
    (ReviewerMessage.of(TOLD, QUESTION, ITEMS), forms.opinion("reviewer", ABOUT, QUESTION, ROWS)),
    (JudgeMessage.of(TOLD, QUESTION, ()), forms.opinion("judge", ABOUT, QUESTION, [])),
    (ValidatorMessage.of(TOLD, Guess("knob", "a round one")), forms.validator(ABOUT, "knob", "a round one")),
]


@pytest.mark.parametrize(("message", "form"), WRITTEN, ids=[message.kind for message, _ in WRITTEN])
def test_a_form_is_that_of_the_actors_own_message(message: Any, form: str) -> None:
    assert message.digest == form


Spoil = Callable[[builder.RunDraft], None]


def audited(tmp_path: Path, key: NewKey, spoil: Spoil | None = None, late: Spoil | None = None) -> AuditReport:
    """The audit of a signed run; ``spoil`` changes its rows before its digests are recorded, ``late`` after that, as an attacker does."""
    draft = builder.draft()
    if spoil is not None:
        spoil(draft)
    draft = builder.recorded(draft)
    if late is not None:
        late(draft)
    folder = draft.seal(tmp_path)
    sign_run(folder, key.private)
    return audit_run(verify_run(folder, [load_public(key.public)]))


def test_an_honest_run_is_computed_again_in_full(tmp_path: Path, key: NewKey) -> None:
    report = audited(tmp_path, key)
    assert report.complete and not report.contradicted and not report.with_archive
    for role in ("guesser", "reviewer", "judge", "validator"):
        counts = report.roles[role]
        assert counts.checked == counts.calls > 0
    # The program's own query is the question; what the search for it returned isn't published.
    oracle = report.roles["oracle"]
    assert oracle.archive_only > 0 and oracle.checked + oracle.archive_only == oracle.calls


def row_of(draft: builder.RunDraft, call: str) -> dict[str, Any]:
    return next(row for row in draft.rows["audits"] if row["call"] == call and row["turn"] > 1)


def turn_of(draft: builder.RunDraft, row: dict[str, Any]) -> dict[str, Any]:
    return next(turn for turn in draft.rows["turns"] if (turn["trial_id"], turn["turn"]) == (row["trial_id"], row["turn"]))


def evidence_of(draft: builder.RunDraft, row: dict[str, Any]) -> list[dict[str, Any]]:
    return [item for item in draft.rows["evidence"] if (item["trial_id"], item["turn"]) == (row["trial_id"], row["turn"])]


def told(draft: builder.RunDraft, subject: str) -> forms.Item:
    return forms.subject(next(row for row in draft.rows["subjects"] if row["subject_id"] == subject))


def leaky(role: str, draft: builder.RunDraft, row: dict[str, Any], kind: str) -> str:
    """The digest of a message that its role may not see."""
    trial = next(each for each in draft.rows["trials"] if each["trial_id"] == row["trial_id"])
    own = told(draft, "T-0008" if (trial["subject_id"] == "T-0008") is (kind == "byte") else "T-0001")
    turn = turn_of(draft, row)
    if role == "validator":
        return forms.validator(own, turn["guess_name"], turn["guess_description"] + (" " if kind == "byte" else ""))
    return forms.opinion(role, own, turn["question"] + (" " if kind == "byte" else ""), evidence_of(draft, row))


@pytest.mark.parametrize("kind", ["byte", "another subject"])
@pytest.mark.parametrize("role", ["reviewer", "judge", "validator"])
def test_a_message_that_holds_more_or_another_subject_is_found(tmp_path: Path, key: NewKey, role: str, kind: str) -> None:
    def late(draft: builder.RunDraft) -> None:
        row = row_of(draft, role)
        row["message_sha256"] = leaky(role, draft, row, kind)

    report = audited(tmp_path, key, late=late)
    assert [(finding.role, finding.fault) for finding in report.findings] == [(role, Fault.MESSAGE)]
    assert report.contradicted and report.roles[role].wrong == 1


def test_another_roles_token_in_the_guessers_view_is_found(tmp_path: Path, key: NewKey) -> None:
    def late(draft: builder.RunDraft) -> None:
        judged = next(turn for turn in draft.rows["turns"] if turn.get("judge") is not None)
        own = [turn for turn in draft.rows["turns"] if turn["trial_id"] == judged["trial_id"] and turn["turn"] <= judged["turn"]]
        trial = next(each for each in draft.rows["trials"] if each["trial_id"] == judged["trial_id"])
        history: list[forms.Item] = []
        for turn in own:
            token = judged["oracle"] if turn is judged else turn.get("final_token")
            asked = action_of(turn)
            history.append(forms.REMINDER if asked is None else forms.exchange(asked, str(token)))
        row = next(
            row
            for row in draft.rows["audits"]
            if (row["trial_id"], row["turn"], row["call"]) == (judged["trial_id"], judged["turn"] + 1, "guesser")
        )
        assert row["message_sha256"] != guesser("thing", trial["variation"], history)
        row["message_sha256"] = guesser("thing", trial["variation"], history)

    report = audited(tmp_path, key, late=late)
    assert [(finding.role, finding.fault) for finding in report.findings] == [("guesser", Fault.MESSAGE)]


def action_of(turn: dict[str, Any]) -> str | None:
    """A turn's action in canonical form; None for a violation."""
    if turn["kind"] == "ask":
        return Ask(turn["question"]).canonical
    return Guess(turn["guess_name"], turn["guess_description"]).canonical if turn["kind"] == "guess" else None


@pytest.mark.parametrize("column", ["url", "excerpt"])
def test_evidence_that_was_changed_after_it_was_judged_is_found(tmp_path: Path, key: NewKey, column: str) -> None:
    def late(draft: builder.RunDraft) -> None:
        item = evidence_of(draft, row_of(draft, "judge"))[2]
        item[column] += "x"

    report = audited(tmp_path, key, late=late)
    assert {(finding.role, finding.fault) for finding in report.findings} == {("reviewer", Fault.MESSAGE), ("judge", Fault.MESSAGE)}


def test_evidence_in_a_telling_order_is_found(tmp_path: Path, key: NewKey) -> None:
    def telling(draft: builder.RunDraft) -> None:
        one, two, _ = evidence_of(draft, row_of(draft, "judge"))
        one["number"], two["number"] = two["number"], one["number"]

    report = audited(tmp_path, key, spoil=telling)
    assert [(finding.role, finding.fault) for finding in report.findings] == [("oracle", Fault.ORDER)]
    assert report.contradicted


def test_a_question_that_was_changed_shows_in_all_that_saw_it(tmp_path: Path, key: NewKey) -> None:
    def late(draft: builder.RunDraft) -> None:
        turn_of(draft, row_of(draft, "judge"))["question"] = "Is it seldom seen?"

    report = audited(tmp_path, key, late=late)
    assert {finding.role for finding in report.findings} == {"guesser", "oracle", "reviewer", "judge"}


def test_a_call_that_the_rules_do_not_make_is_found(tmp_path: Path, key: NewKey) -> None:
    def late(draft: builder.RunDraft) -> None:
        row = next(row for row in draft.rows["audits"] if row["call"] == "reviewer" and turn_of(draft, row)["judge"] is None)
        for table in ("audits", "usage"):
            place = (row["trial_id"], row["turn"], "reviewer")
            own = next(each for each in draft.rows[table] if (each["trial_id"], each["turn"], each["call"]) == place)
            draft.rows[table].append({**own, "call": "judge"} | ({"served_model": "support-judge"} if table == "audits" else {}))
        rebalance(draft)

    report = audited(tmp_path, key, late=late)
    assert [(finding.call, finding.fault) for finding in report.findings] == [("judge", Fault.UNEXPECTED)]


@pytest.mark.parametrize("call", ["guesser", "oracle", "reviewer", "judge", "validator"])
@pytest.mark.parametrize("how", ["dropped", "superseded", "no request"])
def test_a_required_audit_that_is_not_kept_is_missing(tmp_path: Path, key: NewKey, call: str, how: str) -> None:
    def late(draft: builder.RunDraft) -> None:
        row = row_of(draft, call)
        if how == "no request":
            row["request_sha256"] = None
        else:
            place = (row["trial_id"], row["turn"], call)
            for table in ("audits", "usage"):
                own = [each for each in draft.rows[table] if (each["trial_id"], each["turn"], each["call"]) == place]
                for each in own:
                    if how == "dropped":
                        draft.rows[table].remove(each)
                    else:
                        each["state"] = "superseded"
        rebalance(draft)

    report = audited(tmp_path, key, late=late)
    assert [(finding.call, finding.fault, finding.ask) for finding in report.findings] == [(call, Fault.MISSING, None)]
    assert report.roles[call].missing == 1 and not report.complete and not report.contradicted


def rebalance(draft: builder.RunDraft) -> None:
    """A trial's cost of answering follows what is kept; records are checked for it."""
    for trial in draft.rows["trials"]:
        usage = [row for row in draft.rows["usage"] if row["state"] == "terminal"]
        trial |= builder.answering(usage, trial["trial_id"])
    builder.settle(draft.rows)


def test_another_prompt_or_model_than_the_runs_is_found(tmp_path: Path, key: NewKey) -> None:
    def late(draft: builder.RunDraft) -> None:
        row_of(draft, "reviewer")["prompt_sha256"] = digest_of("another prompt")
        row_of(draft, "validator")["requested_model"] = "another-model"
        row_of(draft, "search")["prompt_sha256"] = digest_of("a tool has none")

    report = audited(tmp_path, key, late=late)
    assert sorted((finding.call, finding.fault) for finding in report.findings) == [
        ("reviewer", Fault.PROMPT),
        ("search", Fault.PROMPT),
        ("validator", Fault.MODEL),
    ]


def test_a_reused_answer_has_the_guessers_call_alone(tmp_path: Path, key: NewKey) -> None:
    def reused(draft: builder.RunDraft) -> None:
        turns = draft.rows["turns"]
        builder.reuse(draft, next(n for n, turn in enumerate(turns) if turn.get("question") == "Is it real?" and turn["repeated"]), 0)

    assert audited(tmp_path, key, spoil=reused).complete


def test_answers_of_other_runs_are_left_to_their_own_audits(tmp_path: Path, key: NewKey) -> None:
    def archived(draft: builder.RunDraft) -> None:
        source = {
            "run": builder.ARCHIVED,
            "trial": "f" * 64,
            "turn": 3,
            "at": builder.COMPLETED_AT,
            "policy": "archive",
            "cost_microusd": 5,
        }
        builder.reuse(draft, 0, source, "archive")

    report = audited(tmp_path, key, spoil=archived)
    assert report.complete and report.elsewhere == {builder.ARCHIVED: 1}
