"""Every page of the site as (address, template, values). The only place that knows what belongs on which page."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from deep20ray_publisher import charts, figures, paths, views
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


def site_pages(editions: tuple[EditionBoards, ...]) -> Iterator[Page]:
    """All pages, in a fixed order."""
    simulated = all(edition.simulated for edition in editions)
    yield Page("index.html", "index.html", "deep20ray", {"editions": editions}, simulated=simulated)
    for edition in editions:
        yield from _edition_pages(edition)
        for standing in views.run_standings(edition):
            yield from _run_pages(edition, standing)


def _edition_pages(edition: EditionBoards) -> Iterator[Page]:
    root = paths.edition_root(edition.rules.id)
    name = f"edition {edition.rules.id}"
    axes = [charts.score_axis(edition.rules, [each.score for each in board.standings]) for board in edition.boards]
    widths = [charts.width_axis([each.score for each in board.standings]) for board in edition.boards]
    plots = [charts.cost_plot(edition.rules, board.standings) for board in edition.boards]
    lines = [_board_lines(edition, board) for board in edition.boards]
    reusing = any(each.entry.record.reused for board in edition.boards for each in board.standings)

    def page(path: str, template: str, title: str, **values: Any) -> Page:
        return Page(f"{root}/{path}", template, f"{title}, {name}", values, edition, edition.simulated)

    yield page("index.html", "leaderboard.html", "Leaderboard", boards=list(zip(edition.boards, axes, strict=True)), reusing=reusing)
    yield page("stability.html", "stability.html", "Stability", boards=list(zip(edition.boards, widths, strict=True)), reusing=reusing)
    yield page(
        "cost.html", "cost.html", "Cost", boards=list(zip(edition.boards, plots, strict=True)), standings=views.run_standings(edition)
    )
    yield page("subjects/index.html", "subjects.html", "Subjects", boards=list(zip(edition.boards, lines, strict=True)))
    yield page("methodology.html", "methodology.html", "Methodology")
    yield page("verify.html", "verify.html", "Data and verification")
    yield from _subject_pages(edition)


def _board_lines(edition: EditionBoards, board: Board) -> list[tuple[SubjectRow, list[views.SubjectLine]]]:
    """Per subject of a board, its line in each run, in rank order."""
    return [
        (subject, [views.subject_line(edition.rules, each.entry.record, subject) for each in board.standings]) for subject in board.subjects
    ]


def _subject_pages(edition: EditionBoards) -> Iterator[Page]:
    """Per cohort and subject one page over all models; a cohort may be on several boards of different shape."""
    seen: dict[str, tuple[Entry, SubjectRow]] = {}
    for entry in edition.entries:
        for subject in entry.record.subjects:
            seen.setdefault(paths.subject(entry.record.run, subject.subject_id), (entry, subject))
    for path, (entry, subject) in sorted(seen.items()):
        cohort = entry.record.run.cohort
        boards = [
            (board, [(each, views.subject_line(edition.rules, each.entry.record, own)) for each in board.standings])
            for board in edition.boards
            for own in board.subjects
            if board.cohort == cohort and own.subject_id == subject.subject_id
        ]
        values = {"subject": subject, "cohort": cohort, "boards": boards, "reference": link(subject.reference)}
        title = f"{visible_plain(subject.name)}, edition {edition.rules.id}"
        yield Page(path, "subject.html", title, values, edition, edition.simulated)


def _run_pages(edition: EditionBoards, run: views.RunStanding) -> Iterator[Page]:
    entry, record = run.entry, run.entry.record
    simulated = record.run.simulated
    name = f"{visible_plain(record.model)}, edition {edition.rules.id}"
    lines = [views.subject_line(edition.rules, record, subject) for subject in record.subjects]
    values: dict[str, Any] = {
        "run": run,
        "entry": entry,
        "record": record,
        "lines": lines,
        "reliability": figures.reliability(record, record.trials),
        "costs": figures.costs(record),
        "uses": figures.use_by_role(call for calls in record.calls.values() for call in calls),
        "axis": charts.score_axis(edition.rules, [run.standing.score]) if run.standing else None,
    }
    yield Page(f"{paths.run_root(entry)}/index.html", "run.html", name, values, edition, simulated)
    for line in lines:
        title = f"{visible_plain(line.subject.name)}: {name}"
        values = {"run": run, "entry": entry, "record": record, "line": line, "reference": link(line.subject.reference)}
        yield Page(paths.run_subject(entry, line.subject.subject_id), "run_subject.html", title, values, edition, simulated)
    yield from _episode_pages(edition, run, lines)


def _episode_pages(edition: EditionBoards, run: views.RunStanding, lines: list[views.SubjectLine]) -> Iterator[Page]:
    entry, record = run.entry, run.entry.record
    order = [(line, cell) for line in lines for cell in line.cells]
    for index, (line, cell) in enumerate(order):
        trial = cell.trial
        values = {
            "run": run,
            "entry": entry,
            "record": record,
            "subject": line.subject,
            "trial": trial,
            "cell": cell,
            "turns": views.turn_views(record, trial),
            "reliability": figures.reliability(record, [trial]),
            "uses": figures.use_by_role(record.calls.get(trial.trial_id, ())),
            "repairs": [row for row in record.repairs if row.trial_id == trial.trial_id],
            "previous": order[index - 1] if index else None,
            "next": order[index + 1] if index + 1 < len(order) else None,
        }
        title = f"{visible_plain(line.subject.name)}, round {trial.round}: {visible_plain(record.model)}, edition {edition.rules.id}"
        yield Page(paths.episode(entry, trial), "episode.html", title, values, edition, record.run.simulated)
