"""A game at a glance: each turn as a coloured letter, and the whole game as a strip of bars. Shape tells as much as colour does."""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

from deep20ray_publisher.records import TurnRow


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


Strip = tuple[tuple[str, str], ...]


def strip(turns: Sequence[TurnRow]) -> Strip:
    """A whole game as a small strip, 14 high: per class of turn one path of bars, ``STRIP_STEP`` apart."""
    paths: dict[str, list[str]] = defaultdict(list)
    for index, cell in enumerate(cells(turns)):
        for x, y, width, height in _BARS[cell.kind]:
            paths[cell.kind].append(f"M{index * STRIP_STEP + x} {y}h{width}v{height}h-{width}z")
    return tuple((kind, "".join(parts)) for kind, parts in sorted(paths.items()))
