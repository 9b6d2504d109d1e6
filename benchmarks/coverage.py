"""Prints the interval's simulated coverage as it stands in ``deep20ray.coverage``. Takes about ten seconds."""

from deep20ray.coverage import DRAWS, SCENARIOS, SEED, simulate


def main() -> None:
    """One line per scenario, ready to be pasted."""
    for scenario in SCENARIOS:
        found = simulate(scenario, DRAWS, SEED)
        print(f"    Covered({found.covered:.3f}, {found.worse:.3f}, {found.mean_width:.1f}),  # {scenario.words}")


if __name__ == "__main__":
    main()
