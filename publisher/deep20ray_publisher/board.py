"""Which runs count, and how they stand. Pure: verified entries in, one ``EditionBoards`` per edition out.

Runs are compared only if they share edition, cohort, subjects and rounds: such a set is a board. Per board and model the newest
completed run is used, never the best. Ranks follow exact values; exact ties share a rank.
"""

from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from deep20ray.editions import Edition, edition
from deep20ray.score import Score, score_run
from deep20ray.statistics import RankRange, rank_ranges
from deep20ray_publisher.catalog import Entry
from deep20ray_publisher.errors import CatalogRefused, NotOfficial, SelectionTie
from deep20ray_publisher.figures import Costs, Reliability, costs
from deep20ray_publisher.records import SubjectRow
from deep20ray_publisher.text import slug


@dataclass(frozen=True, slots=True)
class Place:
    """A rank, and whether another run holds it too."""

    rank: int
    shared: bool


@dataclass(frozen=True, slots=True)
class Standing:
    """A run on a board. ``stability`` is None for a run without an interval."""

    entry: Entry
    score: Score
    place: Place
    ranks: RankRange
    """The ranks that aren't ruled out, by Holm over all pairs of the board."""
    stability: Place | None
    reliability: Reliability
    costs: Costs

    @property
    def success_rate(self) -> float:
        """Share of trials in which the subject was found."""
        return self.costs.solved / self.costs.trials


@dataclass(frozen=True, slots=True)
class Board:
    """Runs that may be compared, best first."""

    cohort: str
    rounds: int
    subjects: tuple[SubjectRow, ...]
    whole_edition: bool
    """Whether it has the edition's number of subjects and rounds."""
    standings: tuple[Standing, ...]

    @property
    def by_stability(self) -> tuple[Standing, ...]:
        """Narrowest interval first; runs without an interval last."""
        return tuple(sorted(self.standings, key=lambda each: (each.stability is None, each.stability.rank if each.stability else 0)))


@dataclass(frozen=True, slots=True)
class LeftOut:
    """A verified run that is on no board."""

    entry: Entry
    reason: str


@dataclass(frozen=True, slots=True)
class EditionBoards:
    """All that is published under one edition."""

    rules: Edition
    boards: tuple[Board, ...]
    left_out: tuple[LeftOut, ...]
    entries: tuple[Entry, ...]
    preview: bool

    @property
    def as_of(self) -> datetime:
        """The last completion among its runs, or where none is complete the last start."""
        times = [entry.record.run.completed_at for entry in self.entries]
        return max((time for time in times if time is not None), default=max(entry.record.run.started_at for entry in self.entries))

    @property
    def simulated(self) -> bool:
        """Whether every run is simulated."""
        return all(entry.record.run.simulated for entry in self.entries)


def official(entries: Iterable[Entry]) -> tuple[Entry, ...]:
    """The official ones among them.

    Raises:
        NotOfficial: there is none; with each run's reasons.
    """
    found = tuple(entry for entry in entries if entry.official is not None)
    if not found:
        refused = "\n  ".join(f"{entry.record.run.run_id}: {', '.join(entry.unofficial)}" for entry in entries)
        raise NotOfficial(f"none of these runs is official, so nothing was built (--preview builds a marked preview):\n  {refused}")
    return found


def edition_boards(entries: Sequence[Entry], preview: bool) -> tuple[EditionBoards, ...]:
    """Every edition's boards, newest edition first.

    Raises:
        SelectionTie: two newest runs of one model ended at the same time.
        CatalogRefused: one cohort id that stands for two cohorts, or an id that can't be part of an address.
    """
    by_edition: dict[str, list[Entry]] = defaultdict(list)
    for entry in entries:
        by_edition[entry.record.run.edition].append(entry)
    return tuple(_edition(edition(id_), by_edition[id_], preview) for id_ in sorted(by_edition, reverse=True))


def _edition(rules: Edition, entries: list[Entry], preview: bool) -> EditionBoards:
    _check_cohorts(entries)
    groups: dict[tuple[Any, ...], list[Entry]] = defaultdict(list)
    for entry in entries:
        groups[_board_key(entry)].append(entry)
    boards: list[Board] = []
    left_out: list[LeftOut] = []
    for key in sorted(groups):
        chosen, others = _select(groups[key])
        left_out += others
        if chosen:
            boards.append(_board(rules, chosen))
    boards.sort(key=lambda board: (not board.whole_edition, -len(board.subjects) * board.rounds, board.cohort))
    left_out.sort(key=lambda item: item.entry.record.run.run_id)
    return EditionBoards(rules, tuple(boards), tuple(left_out), tuple(entries), preview)


def _board_key(entry: Entry) -> tuple[Any, ...]:
    record = entry.record
    # Runs under another policy, and simulated ones, are never ranked with the rest, and never stand for them.
    return (
        record.run.cohort,
        record.run.policy,
        record.run.simulated,
        entry.predicate.limits.rounds,
        tuple(subject.subject_id for subject in record.subjects),
    )


def _check_cohorts(entries: Iterable[Entry]) -> None:
    protocols: dict[str, str] = {}
    for entry in entries:
        run = entry.record.run
        if protocols.setdefault(run.cohort, run.protocol_version) != run.protocol_version:
            raise CatalogRefused(
                f"run {run.run_id}: cohort {run.cohort!r} has other subjects here than in another run; a changed cohort needs its own id"
            )
        for signed_id in (run.cohort, *(subject.subject_id for subject in entry.record.subjects)):
            if slug(signed_id) is None:
                raise CatalogRefused(
                    f"run {run.run_id}: id {signed_id!r} can't be part of an address; use letters, digits, dots and hyphens"
                )


def _select(entries: list[Entry]) -> tuple[list[Entry], list[LeftOut]]:
    """Per model the newest completed run, and why the others are left out."""
    by_model: dict[str, list[Entry]] = defaultdict(list)
    left_out: list[LeftOut] = []
    for entry in entries:
        run = entry.record.run
        if run.complete:
            by_model[run.model_id].append(entry)
        else:
            left_out.append(LeftOut(entry, f"incomplete: {run.scored_trials} of {run.planned_trials} trials are scored"))
    chosen: list[Entry] = []
    for runs in by_model.values():
        newest = max(runs, key=_completed)
        for run_entry in runs:
            if run_entry is newest:
                continue
            if _completed(run_entry) == _completed(newest):
                ids = f"{newest.record.run.run_id} and {run_entry.record.run.run_id}"
                raise SelectionTie(
                    f"{ids}: both are the newest completed run of model {newest.record.run.model_id!r}; remove one, nothing was built"
                )
            left_out.append(LeftOut(run_entry, f"a newer completed run of this model is used: {newest.record.run.run_id}"))
        chosen.append(newest)
    return chosen, left_out


def _completed(entry: Entry) -> datetime:
    completed = entry.record.run.completed_at
    assert completed is not None  # a complete run has a time, checked by verification
    return completed


def _board(rules: Edition, entries: list[Entry]) -> Board:
    scores = [score_of(entry) for entry in entries]
    places = _places(scores, lambda score: score.exact)
    stable = [score for score in scores if score.stability_key is not None]
    stability = dict(zip(map(id, stable), _places(stable, lambda score: score.stability_key), strict=True))
    standings = [
        Standing(entry, score, place, ranks, stability.get(id(score)), entry.summary.reliability, costs(entry.record))
        for entry, score, place, ranks in zip(entries, scores, places, rank_ranges([trials_of(entry) for entry in entries]), strict=True)
    ]
    standings.sort(key=lambda each: (each.place.rank, each.entry.record.run.model_id))
    newest = max(entries, key=lambda entry: (_completed(entry), entry.record.run.run_id))
    record, rounds = newest.record, newest.predicate.limits.rounds
    whole = (len(record.subjects), rounds) == (rules.subjects, rules.rounds)
    return Board(record.run.cohort, rounds, record.subjects, whole, tuple(standings))


def score_of(entry: Entry) -> Score:
    """A complete run's score."""
    return score_run(trials_of(entry))


def trials_of(entry: Entry) -> dict[str, list[int]]:
    """A complete run's scores by subject."""
    trials: dict[str, list[int]] = defaultdict(list)
    for trial in entry.record.trials:
        assert trial.score is not None
        trials[trial.subject_id].append(trial.score)
    return dict(trials)


def _places(scores: Sequence[Score], key: Callable[[Score], Any]) -> list[Place]:
    values = [key(score) for score in scores]
    return [Place(1 + sum(other < value for other in values), values.count(value) > 1) for value in values]
