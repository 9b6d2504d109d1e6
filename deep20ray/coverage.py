"""How often the score's 95 % interval really holds the true score: a simulation, and the table that it gave.

Invented models play invented games: on every subject the number of questions is drawn around a mean, and a game fails with a given
chance. Nothing here looks at a run. ``COVERAGE`` is what ``python -m benchmarks.coverage`` prints; a test draws it again.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import stdtrit


@dataclass(frozen=True, slots=True)
class Scenario:
    """A model on ``subjects`` subjects with ``rounds`` trials each.

    Questions are normal around means spread evenly from ``low`` to ``high``, rounded and held between 1 and the limit; a trial fails
    by chance ``fail``, on the first ``hard`` subjects by ``hard_fail``.
    """

    words: str
    low: float = 8
    high: float = 24
    spread: float = 4
    fail: float = 0
    hard: int = 0
    hard_fail: float = 0
    subjects: int = 10
    rounds: int = 3
    limit: int = 40


@dataclass(frozen=True, slots=True)
class Covered:
    """Shares of simulated runs. ``worse`` are misses in which the true score is above the interval."""

    covered: float
    worse: float
    mean_width: float


def simulate(scenario: Scenario, draws: int, seed: int) -> Covered:
    """Draws runs and counts. Vectorised: an array of shape (draws, subjects, rounds)."""
    random = np.random.Generator(np.random.PCG64(seed))
    means = np.linspace(scenario.low, scenario.high, scenario.subjects)[None, :, None]
    chance = np.full((1, scenario.subjects, 1), float(scenario.fail))
    chance[:, : scenario.hard] = scenario.hard_fail
    truth = _draw(scenario, random, means, chance, (200_000, scenario.subjects, 1)).mean(axis=0).mean()
    games = _draw(scenario, random, means, chance, (draws, scenario.subjects, scenario.rounds))
    score = games.mean(axis=2).mean(axis=1)
    parts = games.var(axis=2, ddof=1) / scenario.rounds
    whole = parts.sum(axis=1)
    nu = np.divide(whole**2, (parts**2).sum(axis=1) / (scenario.rounds - 1), out=np.ones_like(whole), where=whole > 0)
    half = np.where(whole > 0, stdtrit(nu, 0.975) * np.sqrt(whole) / scenario.subjects, 0)
    low, high = score - half, score + half
    return Covered(float(np.mean((low <= truth) & (truth <= high))), float(np.mean(truth > high)), float(np.mean(2 * half)))


def _draw(scenario: Scenario, random: np.random.Generator, means: Any, chance: Any, shape: tuple[int, ...]) -> Any:
    asked = np.clip(np.rint(random.normal(means, scenario.spread, shape)), 1, scenario.limit)
    return np.where(random.random(shape) < chance, scenario.limit + 1, asked)


SEED = 20261201
DRAWS = 100_000

SCENARIOS: tuple[Scenario, ...] = (
    Scenario("Little noise, no failures", spread=2),
    Scenario("Noise everywhere, one game in twenty fails", spread=6, fail=0.05),
    Scenario("Two subjects on which most games fail", hard=2, hard_fail=0.7),
    Scenario("A weak model: two games in three fail", spread=8, low=14, high=30, fail=0.65),
    Scenario("One subject fails in three games of ten, all else is steady", spread=1, hard=1, hard_fail=0.3),
    Scenario("All is steady, but one game in fifty fails", spread=1, fail=0.02),
    Scenario("Nearly every game fails", fail=0.95),
    Scenario("Seven subjects with five trials each", spread=6, fail=0.05, subjects=7, rounds=5, limit=50),
)

COVERAGE: tuple[Covered, ...] = (
    Covered(0.960, 0.019, 1.6),  # Little noise, no failures
    Covered(0.952, 0.041, 6.5),  # Noise everywhere, one game in twenty fails
    Covered(0.899, 0.013, 7.1),  # Two subjects on which most games fail
    Covered(0.956, 0.010, 8.5),  # A weak model: two games in three fail
    Covered(0.632, 0.341, 6.1),  # One subject fails in three games of ten, all else is steady
    Covered(0.637, 0.363, 3.5),  # All is steady, but one game in fifty fails
    Covered(0.785, 0.001, 5.7),  # Nearly every game fails
    Covered(0.926, 0.069, 6.8),  # Seven subjects with five trials each
)
"""Of each scenario, in order."""
