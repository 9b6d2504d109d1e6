"""Geometry for the drawings: plain numbers that templates turn into SVG. Every drawing repeats what a table beside it says."""

from collections.abc import Sequence
from dataclasses import dataclass
from math import ceil, floor, log10

from deep20ray.editions import Edition
from deep20ray.score import Score
from deep20ray.statistics import Curve
from deep20ray_publisher.board import Standing

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

    front = [each for each in known if not any(beats(other, each) for other in known)]
    points = tuple(
        Point(each, number, x(log), y(each.score.score), maybe(each.score.low), maybe(each.score.high), each in front)
        for number, (each, log) in enumerate(zip(known, logs, strict=True), start=1)
    )
    corners = sorted((point.x, point.y) for point in points if point.front)
    step = "".join(f"M{px} {py}" if not index else f"H{px}V{py}" for index, (px, py) in enumerate(corners))
    x_ticks = tuple((x(tick), 10**tick) for tick in range(left, right + 1) if tick >= 0)
    return CostPlot(points, x_ticks, tuple((y(tick), tick) for tick in axis.ticks), step)


def beats(one: Standing, other: Standing) -> bool:
    """No worse in both cost and score, better in one."""
    cost_one, cost_other = one.costs.model or 0, other.costs.model or 0
    no_worse = cost_one <= cost_other and one.score.exact <= other.score.exact
    return no_worse and (cost_one, one.score.exact) != (cost_other, other.score.exact)


CURVE_WIDTH, CURVE_HEIGHT = 200, 96


def curve_path(curve: Curve, rules: Edition) -> str:
    """The share of games still going, as steps in a drawing of ``CURVE_WIDTH`` by ``CURVE_HEIGHT``."""
    path = "M0 0"
    for questions, share in curve.steps:
        path += f"H{round(questions / rules.question_limit * CURVE_WIDTH, 1)}V{round((1 - float(share)) * CURVE_HEIGHT, 1)}"
    return f"{path}H{CURVE_WIDTH}"


@dataclass(frozen=True, slots=True)
class Part:
    """A part of a stacked bar."""

    name: str
    x: float
    width: float


def stacked(parts: Sequence[tuple[str, int | None]], most: int) -> tuple[Part, ...]:
    """Parts laid end to end, ``most`` filling the width of a drawing; unknown ones take no room."""
    bars, at = [], 0.0
    for name, value in parts:
        width = (value or 0) / max(most, 1) * WIDTH
        if value:
            bars.append(Part(name, round(at, 1), round(max(width, 0.5), 1)))
        at += width
    return tuple(bars)


def bar(value: float | None, most: float) -> float:
    """The length of a bar in a drawing ``WIDTH`` wide."""
    return round((value or 0) / most * WIDTH, 1) if most else 0.0
