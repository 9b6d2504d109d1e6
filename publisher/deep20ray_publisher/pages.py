"""Every page of the site as (address, template, values). The only place that knows what belongs on which page.

Two kinds: pages of the site, of an edition, and of a run's results change when other runs come; the pages of a run's subjects and
games follow from that run alone, and are made, and kept from one build to the next, run by run.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from itertools import groupby
from typing import Any

from deep20ray.coverage import COVERAGE, DRAWS, SCENARIOS
from deep20ray_publisher import charts, figures, paths, views
from deep20ray_publisher.analysis import BoardNumbers, Pair, board_numbers
from deep20ray_publisher.board import Board, EditionBoards
from deep20ray_publisher.catalog import Entry
from deep20ray_publisher.records import SubjectRow
from deep20ray_publisher.text import link, visible_plain


@dataclass(frozen=True, slots=True)
class Page:
    """One HTML file."""

    path: str
    template: str
    title: str
    values: Mapping[str, Any]
    edition: EditionBoards | None = None
    simulated: bool = False
    """Whether what the page shows comes from simulated runs alone."""
    about: str = "Twenty Questions, played by language models: signed results, game by game."
    """One sentence for search engines and previews."""
    tab: str = ""
    """The entry of the navigation that it belongs to."""


class EditionPages:
    """An edition and what its pages need more than once."""

    def __init__(self, edition: EditionBoards) -> None:
        self.edition = edition
        self.root = paths.edition_root(edition.rules.id)

    @cached_property
    def numbers(self) -> tuple[BoardNumbers, ...]:
        """The analyses of each board."""
        return tuple(board_numbers(self.edition.rules, board) for board in self.edition.boards)

    @cached_property
    def runs(self) -> tuple[views.RunStanding, ...]:
        """Every run, in the order of ranks."""
        return views.run_standings(self.edition)

    def page(self, path: str, template: str, title: str, about: str, tab: str, **values: Any) -> Page:
        """A page of the edition."""
        edition = self.edition
        return Page(f"{self.root}/{path}", template, f"{title}, edition {edition.rules.id}", values, edition, edition.simulated, about, tab)

    def results(self) -> Iterator[Page]:
        """The pages about all runs."""
        rules, boards = self.edition.rules, self.edition.boards
        reusing = any(each.entry.record.reused for board in boards for each in board.standings)
        axes = (charts.score_axis(rules, [each.score for each in board.standings]) for board in boards)
        widths = (charts.width_axis([each.score for each in board.standings]) for board in boards)
        plots = (charts.cost_plot(rules, board.standings) for board in boards)
        lines = (_board_lines(self.edition, board) for board in boards)
        simulated = {"coverage": list(zip(SCENARIOS, COVERAGE, strict=True)), "draws": DRAWS, "numbers": self.numbers}
        for path, template, title, about, values in (
            ("index", "leaderboard", "Leaderboard", "Who needs the fewest questions?", {"boards": _with(boards, axes)}),
            ("stability", "stability", "Stability", "Whose results repeat?", {"boards": _with(boards, widths)}),
            ("reliability", "reliability", "Reliability", "Who keeps the action contract?", {"boards": boards}),
            ("cost", "cost", "Cost", "What a result costs, role by role.", {"boards": boards}),
            ("time", "time", "Time", "How long a game takes.", {"boards": boards}),
            ("efficiency", "efficiency", "Efficiency", "Score against cost.", {"boards": _with(boards, plots)}),
            ("statistics", "statistics", "Statistics", "Which differences are more than chance.", simulated),
            ("compare/index", "compare_index", "Compare", "Two models side by side.", {"numbers": self.numbers}),
            ("subjects/index", "subjects", "Subjects", "Each model on each subject.", {"boards": _with(boards, lines)}),
            ("methodology", "methodology", "Methodology", "What is measured, and how.", {}),
            ("verify", "verify", "Data and verification", "Signed files, and how to check them.", {}),
        ):
            shared: dict[str, Any] = {"reusing": reusing, "as_of": self.edition.as_of}
            yield self.page(f"{path}.html", f"{template}.html", title, about, f"{path}.html", **shared, **values)

    def subjects(self) -> Iterator[Page]:
        """Per cohort and subject one page over all models; a cohort may be on several boards of different shape."""
        edition = self.edition
        seen: dict[str, tuple[Entry, SubjectRow]] = {}
        for entry in edition.entries:
            for subject in entry.record.subjects:
                seen.setdefault(paths.subject(entry.record.run, subject.subject_id), (entry, subject))
        for path, (entry, subject) in sorted(seen.items()):
            cohort = entry.record.run.cohort
            boards = [
                (board, [(each, views.subject_line(edition.rules, each.entry, own)) for each in board.standings])
                for board in edition.boards
                for own in board.subjects
                if board.cohort == cohort and own.subject_id == subject.subject_id
            ]
            values = {"subject": subject, "cohort": cohort, "boards": boards, "reference": link(subject.reference)}
            yield self.page(
                path.removeprefix(f"{self.root}/"),
                "subject.html",
                visible_plain(subject.name),
                f"All models on {visible_plain(subject.name)}.",
                "subjects/index.html",
                **values,
            )

    def comparisons(self) -> Iterator[Page]:
        """Per pair of neighbours one page over all subjects, and one per subject with both paths."""
        for numbers in self.numbers:
            for _, pairs in groupby(numbers.neighbours, key=lambda pair: pair.one.entry.slug):
                for pair in (found := list(pairs)):
                    yield from self._pair(numbers.board, pair)
                found[0].one.entry.record.release()

    def _pair(self, board: Board, pair: Pair) -> Iterator[Page]:
        rules = self.edition.rules
        names = f"{visible_plain(pair.one.entry.record.model)} and {visible_plain(pair.other.entry.record.model)}"
        lines = [
            (subject, views.subject_line(rules, pair.one.entry, subject), views.subject_line(rules, pair.other.entry, subject))
            for subject in board.subjects
        ]
        shared = {"pair": pair, "board": board, "lines": lines}
        about = f"{names} on the same subjects, side by side."
        tab = "compare/index.html"
        axis = charts.score_axis(rules, [pair.one.score, pair.other.score])
        yield self.page(f"compare/{pair.stem}/index.html", "compare.html", f"{names} compared", about, tab, axis=axis, **shared)
        for index, (subject, one, other) in enumerate(lines):
            rounds = [
                views.Duel(
                    mine, theirs, *(views.steps(each.entry.record, cell.trial) for each, cell in ((pair.one, mine), (pair.other, theirs)))
                )
                for mine, theirs in zip(one.cells, other.cells, strict=True)
            ]
            yield self.page(
                paths.compared_subject(pair.stem, subject.subject_id),
                "compare_subject.html",
                f"{visible_plain(subject.name)}: {names}",
                about,
                tab,
                subject=subject,
                rounds=rounds,
                previous=lines[index - 1][0] if index else None,
                next=lines[index + 1][0] if index + 1 < len(lines) else None,
                **shared,
            )
        pair.other.entry.record.release()

    def run_results(self, run: views.RunStanding) -> Iterator[Page]:
        """The pages about a run that name its rank."""
        edition, entry, record = self.edition, run.entry, run.entry.record
        name = f"{visible_plain(record.model)}, edition {edition.rules.id}"
        lines = [views.subject_line(edition.rules, entry, subject) for subject in record.subjects]
        values: dict[str, Any] = {
            "run": run,
            "entry": entry,
            "record": record,
            "lines": lines,
            "reliability": entry.summary.reliability,
            "costs": figures.costs(record),
            "uses": entry.summary.uses,
            "axis": charts.score_axis(edition.rules, [run.standing.score]) if run.standing else None,
        }
        simulated, root = record.run.simulated, paths.run_root(entry)
        yield Page(f"{root}/index.html", "run.html", name, values, edition, simulated, f"All games of {visible_plain(record.model)}.")
        title = f"How it was run: {name}"
        yield Page(f"{root}/provenance.html", "provenance.html", title, values, edition, simulated, "Plan, prompts, audits, signature.")

    def run_games(self, run: views.RunStanding) -> Iterator[Page]:
        """The pages that follow from a run alone."""
        edition, entry, record = self.edition, run.entry, run.entry.record
        simulated = record.run.simulated
        name = f"{visible_plain(record.model)}, edition {edition.rules.id}"
        lines = [views.subject_line(edition.rules, entry, subject) for subject in record.subjects]
        for line in lines:
            title = f"{visible_plain(line.subject.name)}: {name}"
            values = {"entry": entry, "record": record, "line": line, "reference": link(line.subject.reference)}
            yield Page(paths.run_subject(entry, line.subject.subject_id), "run_subject.html", title, values, edition, simulated)
        yield from _episode_pages(edition, entry, lines)


def front_pages(editions: tuple[EditionBoards, ...]) -> Iterator[Page]:
    """The pages above all editions."""
    simulated = all(edition.simulated for edition in editions)
    yield Page("index.html", "index.html", "deep20ray", {"editions": editions}, simulated=simulated)
    yield Page("404.html", "404.html", "Not found", {"editions": editions}, simulated=simulated)


def _with(boards: tuple[Board, ...], drawn: Iterable[Any]) -> list[tuple[Board, Any]]:
    return list(zip(boards, drawn, strict=True))


def _board_lines(edition: EditionBoards, board: Board) -> list[tuple[SubjectRow, list[views.SubjectLine]]]:
    """Per subject of a board, its line in each run, in rank order."""
    return [(subject, [views.subject_line(edition.rules, each.entry, subject) for each in board.standings]) for subject in board.subjects]


def _episode_pages(edition: EditionBoards, entry: Entry, lines: list[views.SubjectLine]) -> Iterator[Page]:
    record = entry.record
    order = [(line, cell) for line in lines for cell in line.cells]
    repaired = {row.trial_id for row in record.repairs}
    places = views.places(record)
    for index, (line, cell) in enumerate(order):
        trial = cell.trial
        values = {
            "entry": entry,
            "record": record,
            "subject": line.subject,
            "trial": trial,
            "cell": cell,
            "turns": views.turn_views(record, trial, places),
            "redacted": entry.redacted(trial.trial_id),
            "reliability": figures.reliability([trial], entry.summary.kinds),
            "uses": figures.use_by_role(record.calls.get(trial.trial_id, ())),
            "repairs": [row for row in record.repairs if row.trial_id == trial.trial_id] if trial.trial_id in repaired else [],
            "previous": order[index - 1] if index else None,
            "next": order[index + 1] if index + 1 < len(order) else None,
        }
        title = f"{visible_plain(line.subject.name)}, round {trial.round}: {visible_plain(record.model)}, edition {edition.rules.id}"
        yield Page(paths.episode(entry, trial), "episode.html", title, values, edition, record.run.simulated)
