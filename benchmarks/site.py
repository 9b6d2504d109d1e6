"""How fast sites are built, beside Jinja2 alone: ``python -m benchmarks.site``.

Makes signed runs that verify, builds the site of all of them, builds it again after one new run, and renders as many pages of the same
size and with as many values by a bare template in the same run. Last line: pages per second of the build's rendering part against bare
rendering; 1.0 or more is the goal.
"""

import argparse
import os
import resource
import tempfile
import time
from datetime import UTC, datetime, timedelta
from pathlib import Path

from jinja2 import Environment

from deep20ray_artifacts.keys import TrustedKey, load_public
from deep20ray_artifacts.signing import NewKey, new_key
from deep20ray_publisher import board, catalog
from deep20ray_publisher.making import Making, Options
from deep20ray_publisher.tree import MANIFEST, Earlier
from tests.artifacts import builder

SUBJECTS, ROUNDS = 10, 3
START = datetime(2026, 1, 1, tzinfo=UTC)

BARE = """<!DOCTYPE html><html lang="en"><head><title>{{ title }}</title></head><body><h1>{{ title }}</h1><ol>
{% for turn in turns %}<li>{% for value in turn %}<span class="{{ loop.index }}">{{ value }}</span>
{% endfor %}</li>{% endfor %}</ol></body></html>"""


def add_run(root: Path, key: NewKey, number: int) -> None:
    """A signed run of 30 games of 9 to 29 questions. Ten runs of one model are as many as its site ever shows one of."""
    scores = {
        f"T-{subject:04}": [8 + (number + subject * 7 + round_ * 3) % 20 for round_ in range(ROUNDS)] for subject in range(1, SUBJECTS + 1)
    }
    model = f"model-{number // 10:03}"
    builder.sealed_run(
        root, key.private, model_id=model, name=f"Model {number // 10}", scores=scores, run_seed=f"seed-{number}",
        completed_at=START + timedelta(hours=number),
    )  # fmt: skip


def built(entries: tuple[catalog.Entry, ...], out: Path, jobs: int, earlier: Path | None = None) -> tuple[float, int, int]:
    """Seconds, pages, and files that are not the earlier site's."""
    out.mkdir()
    begun = time.perf_counter()
    pages = Making(out, board.edition_boards(entries, True), Options(True, None, jobs), Earlier.at(earlier) if earlier else None).whole()
    seconds = time.perf_counter() - begun
    new = sum(path.stat().st_nlink == 1 for path in out.rglob("*") if path.is_file() and path.name != MANIFEST)
    return seconds, pages, new


def bare(sizes: list[int], seconds_at_most: float = 10) -> float:
    """Pages per second of a template with as many bytes as our pages have: a value for every 60 bytes, which is what ours have."""
    template = Environment(autoescape=True).from_string(BARE)
    pages = []
    for size in sizes[:200]:
        values = max(1, size // 60)
        pages.append([[f"text number {index}, some words" for index in range(8)] for _ in range(max(1, values // 8))])
    begun, done, written = time.perf_counter(), 0, 0
    while time.perf_counter() - begun < seconds_at_most:
        written += len(template.render(title="An episode", turns=pages[done % len(pages)]).encode())
        done += 1
    seconds = time.perf_counter() - begun
    print(f"bench-site: bare Jinja2: {done / seconds:.0f} pages/s of {written / done / 1024:.1f} KiB")
    return written / seconds


def main() -> None:
    """Runs it."""
    parser = argparse.ArgumentParser(prog="benchmarks.site", description=__doc__)
    parser.add_argument("--episodes", type=int, default=10_000)
    parser.add_argument("--jobs", type=int, default=0)
    arguments = parser.parse_args()
    runs = max(2, arguments.episodes // (SUBJECTS * ROUNDS))
    with tempfile.TemporaryDirectory() as temporary:
        root = Path(temporary)
        key = new_key(root / "keys", "bench", throwaway=True)
        begun = time.perf_counter()
        for number in range(runs):
            add_run(root / "runs", key, number)
        print(f"bench-site: {runs} signed runs made in {time.perf_counter() - begun:.0f} s")
        measure(root, runs, key, load_public(key.public), arguments.jobs)


def measure(root: Path, runs: int, key: NewKey, trusted: TrustedKey, jobs: int) -> None:
    """Verifies, builds, builds again with one run more, and compares."""
    begun = time.perf_counter()
    entries = catalog.load([root / "runs"], [trusted])
    print(f"bench-site: verified and audited in {time.perf_counter() - begun:.1f} s")
    seconds, pages, _ = built(entries, root / "site", jobs)
    sizes = [path.stat().st_size for path in sorted((root / "site").rglob("*-r?.html"))]
    whole = sum(path.stat().st_size for path in (root / "site").rglob("*.html"))
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(f"bench-site: {len(sizes)} episodes, {pages} pages in {seconds:.1f} s, {1000 * seconds / pages:.2f} ms each")
    print(f"bench-site: peak memory {peak:.0f} MiB, {os.cpu_count()} processors")
    add_run(root / "runs", key, runs)
    more = catalog.load([root / "runs"], [trusted])
    again, _, new = built(more, root / "again", jobs, root / "site")
    print(f"bench-site: one run more: {again:.1f} s, {new} of {pages} files new")
    ratio = (whole / seconds) / bare(sizes)
    print(f"bench-site: ratio {ratio:.2f}, goal 1.0")


if __name__ == "__main__":
    main()
