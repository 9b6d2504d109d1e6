"""Geometry for the drawings: plain numbers that templates turn into SVG. Every drawing repeats what a table beside it says."""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from math import ceil, floor, log10

from deep20ray.editions import Edition
from deep20ray.score import Score
from deep20ray_publisher.board import Standing
from deep20ray_publisher.records import TurnRow

WIDTH = 320
_PAD = 8


@dataclass(frozen=True, slots=True)
class Axis:
    """Maps question counts to x in a drawing ``WIDTH`` wide."""

    low: float
    high: float
    ticks: tuple[int, ...]

    def x(self, value: float) -> float:
        """Rounded, so that the text is short and the same everywhere."""
        return round(_PAD + (value - self.low) / (self.high - self.low) * (WIDTH - 2 * _PAD), 1)


def score_axis(rules: Edition, scores: Sequence[Score]) -> Axis:
    """From 0 to the failure score, further where an interval goes beyond: intervals are never clipped."""
    low = min([0.0, *(score.low for score in scores if score.low is not None)])
    high = max([float(rules.failure_score), *(score.high for score in scores if score.high is not None)])
    return Axis(floor(low), ceil(high), tuple(range(0, rules.question_limit + 1, 10)))


def width_axis(scores: Sequence[Score]) -> Axis:
    """From 0 to the widest interval."""
    widest = max([1.0, *(score.width for score in scores if score.width is not None)])
    step = next(step for step in (1, 2, 5, 10, 20, 50, 100) if widest / step <= 6)
    high = ceil(widest / step) * step
    return Axis(0, high, tuple(range(0, high + 1, step)))


@dataclass(frozen=True, slots=True)
class Cell:
    """A turn in a map: its class, its letter, what it says in words."""

    turn: int
    kind: str
    letter: str
    words: str


_TOKENS = {
    "YES": ("yes", "Y", "yes"),
    "RATHER_YES": ("ryes", "y", "rather yes"),
    "UNKNOWN": ("unk", "?", "unknown"),
    "RATHER_NO": ("rno", "n", "rather no"),
    "NO": ("no", "N", "no"),
}
_VERDICTS = {"YES": ("hit", "✓", "right guess"), "NO": ("miss", "✕", "wrong guess"), "UNKNOWN": ("miss", "⁇", "guess, verdict unknown")}


def cells(turns: Sequence[TurnRow]) -> tuple[Cell, ...]:
    """One cell per turn."""
    return tuple(Cell(turn.turn, *_looks(turn)) for turn in turns)


def token_kind(token: str) -> str:
    """The class of an answer's colour."""
    return _TOKENS[token][0]


def _looks(turn: TurnRow) -> tuple[str, str, str]:
    match turn.kind:
        case "guess":
            return _VERDICTS[turn.final_token or "UNKNOWN"]
        case "ask":
            return _TOKENS[turn.final_token or "UNKNOWN"]
        case _:
            return "bad", "!", "violation"


STRIP_STEP = 7
_BARS = {
    "yes": ((0, 0, 6, 8),),
    "ryes": ((0, 3, 6, 5),),
    "unk": ((0, 6, 6, 2),),
    "rno": ((0, 6, 6, 5),),
    "no": ((0, 6, 6, 8),),
    "hit": ((0, 0, 6, 14),),
    "miss": ((0, 0, 2, 14), (4, 0, 2, 14)),
    "bad": ((0, 0, 6, 3), (0, 11, 6, 3)),
}
"""A turn's bars in a strip as (x, y, width, height). Yes stands up and no hangs down, so that shape tells as much as colour."""


def strip(turns: Sequence[TurnRow]) -> tuple[tuple[str, str], ...]:
    """A whole game as a small strip, 14 high: per class of turn one path of bars, ``STRIP_STEP`` apart."""
    paths: dict[str, list[str]] = defaultdict(list)
    for index, cell in enumerate(cells(turns)):
        for x, y, width, height in _BARS[cell.kind]:
            paths[cell.kind].append(f"M{index * STRIP_STEP + x} {y}h{width}v{height}h-{width}z")
    return tuple((kind, "".join(parts)) for kind, parts in sorted(paths.items()))


def heat(rules: Edition, score: float | None, success: bool | None = True) -> str:
    """The shade of a score: h0 (few questions) to h6 (many), hx for a failure, hn for none."""
    if score is None:
        return "hn"
    if success is False or score >= rules.failure_score:
        return "hx"
    return f"h{min(6, int(7 * score / rules.failure_score))}"


@dataclass(frozen=True, slots=True)
class Point:
    """A run in the cost plot."""

    standing: Standing
    number: int
    x: float
    y: float
    y_low: float | None
    y_high: float | None
    front: bool


@dataclass(frozen=True, slots=True)
class CostPlot:
    """Model cost (log) against score; ``step`` joins the runs that no other beats in both."""

    points: tuple[Point, ...]
    x_ticks: tuple[tuple[float, int], ...]
    y_ticks: tuple[tuple[float, int], ...]
    step: str


PLOT_WIDTH, PLOT_HEIGHT = 640, 340
_LEFT, _RIGHT, _TOP, _BOTTOM = 44, 20, 16, 44


def cost_plot(rules: Edition, standings: Sequence[Standing]) -> CostPlot | None:
    """None where fewer than two runs have a known, positive cost."""
    known = [each for each in standings if each.costs.model]
    if len(known) < 2:
        return None
    logs = [log10(each.costs.model or 1) for each in known]
    left, right = floor(min(logs) - 0.05), ceil(max(logs) + 0.05)
    axis = score_axis(rules, [each.score for each in known])

    def x(log: float) -> float:
        return round(_LEFT + (log - left) / (right - left) * (PLOT_WIDTH - _LEFT - _RIGHT), 1)

    def y(value: float) -> float:
        return round(_TOP + (value - axis.low) / (axis.high - axis.low) * (PLOT_HEIGHT - _TOP - _BOTTOM), 1)

    def maybe(value: float | None) -> float | None:
        return None if value is None else y(value)

    front = [each for each in known if not any(_beats(other, each) for other in known)]
    points = tuple(
        Point(each, number, x(log), y(each.score.score), maybe(each.score.low), maybe(each.score.high), each in front)
        for number, (each, log) in enumerate(zip(known, logs, strict=True), start=1)
    )
    corners = sorted((point.x, point.y) for point in points if point.front)
    step = "".join(f"M{px} {py}" if not index else f"H{px}V{py}" for index, (px, py) in enumerate(corners))
    x_ticks = tuple((x(tick), 10**tick) for tick in range(left, right + 1) if tick >= 0)
    return CostPlot(points, x_ticks, tuple((y(tick), tick) for tick in axis.ticks), step)


def _beats(one: Standing, other: Standing) -> bool:
    """No worse in both cost and score, better in one."""
    cost_one, cost_other = one.costs.model or 0, other.costs.model or 0
    no_worse = cost_one <= cost_other and one.score.exact <= other.score.exact
    return no_worse and (cost_one, one.score.exact) != (cost_other, other.score.exact)
