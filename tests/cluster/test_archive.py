"""Reading an archive, flagging disputed answers and explaining them: over sealed runs and journals made without Ray."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

import deep20ray_cohorts
from deep20ray.answers import Policy, Role
from deep20ray.canonical import canonical
from deep20ray.reuse import ADJUDICATORS, ReusePolicy, Terms, answer_key
from deep20ray_actors.messages import GuesserMessage, Message
from deep20ray_actors.outcomes import Outcome
from deep20ray_artifacts.errors import KeyRefused, VerificationError
from deep20ray_artifacts.signing import new_key, sign_run
from deep20ray_artifacts.verify import check_sealed
from deep20ray_cluster.archive import archive_of, read_archive
from deep20ray_cluster.errors import OutputError, SweepError
from deep20ray_cluster.explain import explain, lines
from deep20ray_cluster.folder import make_folder
from deep20ray_cluster.journal import Journal
from deep20ray_cluster.memory import Memory
from deep20ray_cluster.owner import Owner
from deep20ray_cluster.plan import Plan, research_policy, resolve, terms_of, with_archive
from deep20ray_cluster.reuse import Archive, Hit
from deep20ray_cluster.seal import seal_run
from deep20ray_cluster.sweep import SweepHead, parse_sweep
from deep20ray_cluster.table import Table

from .fakes import GAME, Desk, MemoryJournal, counter, script
from .test_seal import MS, journal_of, make_plan, memories, rows, sealed
from .worlds import sweep_text

NOW = datetime(2026, 12, 2, tzinfo=UTC)
PRICES = "".join(f'\n[prices."{role}"]\ninput_usd_per_mtok = 100\noutput_usd_per_mtok = 1000\n' for role in ("oracle", "reviewer", "judge"))


def head_of(*runs: str, **more: Any) -> SweepHead:
    settings = {"name": "n", "edition": "1.1", "cohort": "core-1.1", "seed": "s", "reuse": "archive", "reuse_trust": ["k.pub"]}
    return SweepHead.model_validate(settings | {"reuse_archive": list(runs)} | more)


@pytest.fixture
async def archived(tmp_path: Path) -> tuple[Plan, Path]:
    """A signed run, its key beside it: the plan it was played by, and its folder."""
    plan = make_plan()
    journal = await journal_of(plan, tmp_path / "journal.sqlite")
    run = sealed(plan, make_folder(tmp_path / "out"), journal)
    journal.close()
    key = new_key(tmp_path, "k", throwaway=False)
    new_key(tmp_path, "stranger", throwaway=False)
    sign_run(run, key.private)
    return plan, run


def read(plan: Plan, run: Path, terms: Terms | None = None, **more: Any) -> Archive:
    base = run.parents[2]
    subjects = {subject.trusted.digest for subject in plan.cohort.subjects}
    return archive_of(read_archive(head_of(f"out/runs/{run.name}", **more), base, terms or terms_of(plan), subjects, NOW))


async def test_every_fresh_answer_of_a_verified_run_is_there_with_its_evidence_and_cost(archived: tuple[Plan, Path]) -> None:
    plan, run = archived
    archive = read(plan, run)
    asked = [row for row in rows(run, "turns") if row["kind"] == "ask"]
    assert len(archive.answers) == len(asked) == 16
    (listed,) = archive.runs
    assert (listed.run_id, listed.answers, listed.differs) == (run.name, 16, ())
    subject = {trial.id: trial.subject.trusted.digest for trial in plan.runs[0].trials}
    for key, record in archive.answers:
        row = next(row for row in asked if (row["trial_id"], row["turn"]) == (record.source.trial, record.source.turn))
        assert key == answer_key(subject[row["trial_id"]], row["question"], terms_of(plan))
        assert (record.token, record.archived, record.source.run) == (row["final_token"], True, run.name)
        assert record.source.at == int(row["completed_at"].timestamp() * 1000 + 0.5)
        items = [item for item in rows(run, "evidence") if (item["trial_id"], item["turn"]) == (row["trial_id"], row["turn"])]
        assert record.facts.count(b'"excerpt":') == len(items)
    owner = Owner.of(with_archive(replace(plan, sweep=reusing(plan, ReusePolicy.ARCHIVE)), archive), tuple)
    trial = plan.runs[0].trials[0]
    place = owner.place(trial, _ask(asked[0]["question"]))
    assert place is not None
    hit = await owner.borrow(place)
    assert isinstance(hit, Hit) and (hit.policy, hit.source.run) == (ReusePolicy.ARCHIVE, run.name)


def _ask(question: str) -> Any:
    from deep20ray.actions import Ask

    return Ask(question)


def reusing(plan: Plan, policy: ReusePolicy) -> Any:
    return plan.sweep.model_copy(update={"sweep": plan.sweep.sweep.model_copy(update={"reuse": policy})})


def test_what_was_answered_after_the_cutoff_or_of_others_is_left_out(archived: tuple[Plan, Path]) -> None:
    plan, run = archived
    times = sorted(row["completed_at"] for row in rows(run, "turns") if row["kind"] == "ask")
    assert len(read(plan, run, reuse_cutoff=times[5]).answers) == 6
    assert read(plan, run, reuse_cutoff=times[0] - timedelta(milliseconds=1)).answers == ()
    base = run.parents[2]
    one = {plan.runs[0].trials[0].subject.trusted.digest}
    assert len(archive_of(read_archive(head_of(f"out/runs/{run.name}"), base, terms_of(plan), one, NOW)).answers) == 8


def changed(terms: Terms, name: str) -> Terms:
    match name.split("."):
        case ["adjudicators", role, field]:
            other = replace(terms.adjudicators[Role(role)], **{field: "0" * 64})
            return replace(terms, adjudicators={**terms.adjudicators, Role(role): other})
        case ["policy"]:
            return replace(terms, policy=Policy.BOUNDED_JUDGE)
        case ["vocabulary"]:
            return replace(terms, vocabulary=terms.vocabulary[1:])
        case [field]:
            return replace(terms, **{field: "0" * 64})  # type: ignore[arg-type]
    raise AssertionError(name)


PARTS = ["vocabulary", "policy", "search_sha256", "fetch_policy"]
PARTS += [f"adjudicators.{role}.{field}" for role in ADJUDICATORS for field in ("config_sha256", "prompt_sha256")]


def test_a_run_of_other_terms_gives_nothing_and_says_why(archived: tuple[Plan, Path]) -> None:
    plan, run = archived
    for name in PARTS:
        archive = read(plan, run, changed(terms_of(plan), name))
        assert (archive.answers, archive.runs[0].differs) == ((), (name,))


def test_a_run_that_can_not_be_trusted_is_refused(archived: tuple[Plan, Path]) -> None:
    plan, run = archived
    with pytest.raises(VerificationError, match="none of the 1 trusted"):
        read(plan, run, reuse_trust=["stranger.pub"])
    with pytest.raises(KeyRefused):
        read(plan, run, reuse_trust=["nobody.pub"])
    with pytest.raises(SweepError, match="named twice"):
        base, name = run.parents[2], f"out/runs/{run.name}"
        read_archive(head_of(name, name), base, terms_of(plan), set(), NOW)
    (run / "turns.arrow").write_bytes((run / "turns.arrow").read_bytes() + b" ")
    with pytest.raises(VerificationError):
        read(plan, run)


@pytest.mark.parametrize("data", [b"", b"[]", b'{"runs": []}', canonical({"runs": [], "answers": [{}], "cutoff": ""})])
def test_a_spoilt_copy_is_refused(data: bytes) -> None:
    with pytest.raises(OutputError, match="restore it"):
        archive_of(data)


# ---- disputed answers, sealed and explained

MOVES = [
    GAME[0],
    GAME[0].replace("Is it", "Is  it"),
    GAME[0].replace("Is it", "is it"),
    '{"action":"ASK","description":null,"name":null,"question":"?"}',
    GAME[6],
]
"""A question, again with more space, another one, one that holds none, and the guess."""


def says(moves: list[str], token: str) -> Any:
    def roles(role: Role, message: Message, seed: int | None) -> Outcome:
        if isinstance(message, GuesserMessage) or not hasattr(message, "question"):
            return script(moves)(role, message, seed)
        return script(moves)(role, message.model_copy(update={"question": token}), seed)

    return roles


def reusing_plan(policy: str) -> Plan:
    text = sweep_text("http://127.0.0.1:9", rounds=3, head=f'reuse = "{policy}"') + PRICES
    return resolve(parse_sweep(text, "s.toml"), deep20ray_cohorts.load("core-1.1"), datetime(2026, 12, 1, tzinfo=UTC))


async def played(plan: Plan, tokens: list[str], apart: int) -> MemoryJournal:
    """A run's trials one after the other; the one of index ``apart`` has an owner that knows nothing, as after a failed flight."""
    journal, ticks = MemoryJournal(), counter()
    for index, (trial, token) in enumerate(zip(plan.runs[0].trials, tokens, strict=True)):
        owner = Owner.of(plan, lambda index=index: [] if index == apart else list(journal.events))  # type: ignore[misc]
        desk, policy = Desk(says(MOVES, token)), research_policy(plan.sweep)
        seed = plan.runs[0].seed
        table = Table(trial, plan.edition, seed, "g0", policy, desk, journal, Memory(), lambda: MS + ticks(), owner)  # type: ignore[arg-type]
        try:
            await table.play()
        except AssertionError as error:
            raise AssertionError(f"trial {index}") from error
    return journal


async def test_disputed_answers_are_marked_and_explained_and_the_sealed_run_verifies(tmp_path: Path) -> None:
    plan = reusing_plan("run")
    memory = await played(plan, ["NO", "YES", "YES"], apart=1)
    journal = Journal(tmp_path / "journal.sqlite")
    await journal.append(*memory.events)
    folder = make_folder(tmp_path / "out")
    run = seal_run(plan, plan.runs[0], folder, journal, memories(plan, journal))
    journal.close()
    assert run is not None
    check_sealed(run)
    turns = {(row["trial_id"], row["turn"]): row for row in rows(run, "turns")}
    one, two, three = (trial.id for trial in plan.runs[0].trials)
    # In the first trial the second question is the first one's; in the second trial nothing of the first was known.
    assert [turns[trial, 2]["source_trial"] for trial in (one, two, three)] == [one, two, None], "and then nothing is reused any more"
    assert [turns[one, turn]["disputed"] for turn in (1, 2, 3, 4, 5)] == [True, True, True, False, False]
    assert turns[one, 1]["source_run"] is None and turns[three, 1]["source_run"] is None
    (source,) = rows(run, "sources")
    assert (source["source_policy"], source["hits"], source["answers"], source["disputed"]) == ("run", 2, 2, 2)
    first, _, third = sorted(rows(run, "trials"), key=lambda row: row["round"])
    assert (first["reused_answers"], third["reused_answers"]) == (1, 0)
    assert first["fresh_adjudication_cost_microusd"] > first["adjudication_cost_microusd"] > 0
    assert third["fresh_adjudication_cost_microusd"] == third["adjudication_cost_microusd"]

    found = explain(plan, memory.events)
    assert (found["asked"], found["reused"], found["degenerate"], found["disputed_classes"]) == (9, 2, 3, 2)
    capital, lower = found["classes"]
    assert (capital["near"], lower["near"]) == ([lower["question"]], [capital["question"]])
    assert capital["answers"] == {"NO": 2, "YES": 4} and capital["disputed"]
    assert [fresh["why"] for fresh in capital["fresh"]][-1] == "earlier answers disagree"
    text = "\n".join(lines(found))
    assert "disputed: no more answers are reused" in text and "another question, for its letters or marks" in text
    assert "3 degenerate questions" in text and "search_sha256" in text


@pytest.mark.parametrize(
    ("policy", "reused", "why"),
    [
        ("off", 0, "the sweep reuses nothing"),
        ("trial", 3, "no earlier answer within reach of policy trial"),
        ("run", 7, "first of its kind"),
    ],
)
async def test_the_reasons_follow_the_policy(policy: str, reused: int, why: str) -> None:
    plan = reusing_plan(policy)
    journal = await played(plan, ["NO", "NO", "NO"], apart=-1)
    found = explain(plan, journal.events)
    assert found["reused"] == reused
    assert found["classes"][0]["fresh"][-1]["why"] == why
    assert found["asked"] == 9
