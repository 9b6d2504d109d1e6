"""What is kept of every trial agrees with what is read again of one."""

from pathlib import Path

import pytest

from deep20ray_cluster.errors import JournalError
from deep20ray_cluster.journal import Event, Journal, Mark
from deep20ray_cluster.memory import Memory, Standing, recall, standings

from .test_seal import journal_of, make_plan


def mark(event: Event) -> Mark:
    return Mark(event.run, event.trial, event.attempt, event.turn, event.kind, event.call, event.ask)


@pytest.mark.parametrize("give_up", [False, True])
async def test_a_standing_is_its_memory_in_a_few_words_wherever_the_journal_breaks_off(tmp_path: Path, give_up: bool) -> None:
    plan = make_plan()
    journal = await journal_of(plan, tmp_path / "j", give_up=give_up)
    events = list(journal.events())
    assert list(journal.marks()) == [mark(event) for event in events]
    journal.close()
    midway = 0
    for trial in plan.runs[0].trials:
        own = [event for event in events if (event.run, event.trial) == trial.key]
        for cut in range(len(own) + 1):
            memory = Memory.of(own[:cut])
            standing = standings([trial.key], map(mark, own[:cut]))[trial.key]
            assert standing == Standing(cut > 0, memory.attempt, memory.ended, memory.failed is not None, memory.midway)
            assert standing.exhausted == memory.exhausted
            midway += standing.midway
    assert midway


async def test_one_trial_is_read_again_by_an_index(tmp_path: Path) -> None:
    plan = make_plan()
    journal = await journal_of(plan, tmp_path / "j")
    for trial in plan.runs[0].trials:
        own = [event for event in journal.events() if (event.run, event.trial) == trial.key]
        assert list(journal.events(*trial.key)) == own
        assert recall(journal, trial.key) == Memory.of(own)
    steps = journal._db.execute(
        "EXPLAIN QUERY PLAN SELECT body FROM events WHERE run = ? AND trial = ? ORDER BY seq", ("r", "t")
    ).fetchall()
    assert ["events_by_trial" in step[3] for step in steps] == [True]
    journal.close()


def test_an_event_that_this_version_can_not_read_is_named_when_its_trial_begins(tmp_path: Path) -> None:
    plan = make_plan()
    key = plan.runs[0].trials[0].key
    journal = Journal(tmp_path / "j")
    journal.note(Event(*key, 1, 1, "reply", "guesser", 0, 1, {}))
    journal.close()
    with pytest.raises(JournalError, match="resume with the version that began the sweep"):
        recall(journal, key)
