"""Makes a site's files in an empty folder: pages, downloads, feeds, and the manifest of all.

A run's subjects and games are made in several processes, and taken over from the earlier site if they were made from the same. One run at
a time is in a process's memory. The order of files, and the number of processes, change no byte.
"""

import json
import os
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from importlib import metadata, resources
from multiprocessing import get_context
from pathlib import Path

from deep20ray.canonical import digest_of, sha256
from deep20ray_publisher import __version__, catalog, downloads, feeds, paths
from deep20ray_publisher.board import EditionBoards
from deep20ray_publisher.catalog import Entry
from deep20ray_publisher.errors import CatalogRefused
from deep20ray_publisher.pages import EditionPages, Page, front_pages
from deep20ray_publisher.render import CSP, Renderer
from deep20ray_publisher.tree import MANIFEST, Earlier, Tree

MADE_BY = "deep20ray-publisher"
CATALOG = "catalog.dsse.json"
"""The catalog of runs, where a site was built with one."""

HEADERS = (
    ("Content-Security-Policy", f"{CSP}; frame-ancestors 'none'"),
    ("X-Content-Type-Options", "nosniff"),
    ("Referrer-Policy", "no-referrer"),
    ("Permissions-Policy", "camera=(), geolocation=(), microphone=()"),
    ("Cross-Origin-Opener-Policy", "same-origin"),
)
"""What the site should be served with; hosts that read a file ``_headers`` do."""
ASSETS = ("site.css", "site.js", "icon.svg", "preview.png")


@dataclass(frozen=True, slots=True)
class Options:
    """How a site is built. ``base_url`` ends with a slash; without it nothing that needs whole addresses is written."""

    preview: bool = False
    base_url: str | None = None
    jobs: int = 0
    """Processes that make pages; 0 for one per processor."""
    listing: bytes | None = None
    """The signed catalog of runs, which is published with the site."""


class Making:
    """One site on its way: what every process needs to make its part."""

    def __init__(self, root: Path, editions: tuple[EditionBoards, ...], options: Options, earlier: Earlier | None) -> None:
        """Args: root is an empty folder; earlier is the site that this one takes the place of."""
        self.tree = Tree(root, earlier)
        self.options = options
        self.editions = tuple(EditionPages(edition) for edition in editions)
        self.assets = {name: _asset(name) for name in ASSETS}
        self.renderer = Renderer({name: path for name, (path, _) in self.assets.items()}, options.preview, options.base_url)
        self.groups = {paths.run_root(run.entry): self._key(run.entry) for pages in self.editions for run in pages.runs}

    def whole(self) -> int:
        """Writes all files; returns the number of pages."""
        for path, data in self.assets.values():
            self.tree.write(path, data)
        self._runs()
        for page in front_pages(tuple(pages.edition for pages in self.editions)):
            self.tree.write(page.path, self.renderer.render(page))
        for pages in self.editions:
            for page in self._edition_pages(pages):
                self._once(page.path)
                self.tree.write(page.path, self.renderer.render(page))
            self._edition_files(pages)
        for path, data in feeds.front(tuple(pages.edition for pages in self.editions), self.options.base_url, self.options.preview):
            self.tree.write(path, data)
        self.tree.write("_headers", ("/*\n" + "".join(f"  {name}: {value}\n" for name, value in HEADERS)).encode())
        if self.options.base_url:
            self.tree.write("sitemap.xml", feeds.sitemap(self.options.base_url, sorted(self.tree.files)))
        if self.options.listing is not None:
            self.tree.write(CATALOG, self.options.listing)
        self._manifest()
        return sum(path.endswith(".html") for path in self.tree.files)

    def _edition_pages(self, pages: EditionPages) -> Iterator[Page]:
        yield from pages.results()
        yield from pages.subjects()
        for run in pages.runs:
            yield from pages.run_results(run)
        yield from pages.comparisons()

    def _once(self, path: str) -> None:
        if path in self.tree.files:
            raise CatalogRefused(_TWICE.format(path))

    # -- the pages of single runs, in several processes

    def _runs(self) -> None:
        jobs = [(number, index) for number, pages in enumerate(self.editions) for index in range(len(pages.runs))]
        missing = [job for job in jobs if not self._kept(*job)]
        count = self.options.jobs or min(len(os.sched_getaffinity(0)), 8)
        if count > 1 and len(missing) > 1:
            # A forked process has a copy of this one's memory: nothing is sent to it but the number of a run.
            with get_context("fork").Pool(min(count, len(missing)), _building.append, (self,)) as pool:
                for files in pool.imap(_in_process, missing):
                    self.tree.files |= files
        else:
            for job in missing:
                self.tree.files |= self.run(*job)
        _check_twice(self.tree.files)

    def _kept(self, number: int, index: int) -> bool:
        """Whether a run's pages could be taken over from the earlier site."""
        earlier = self.tree.earlier
        folder = paths.run_root(self.editions[number].runs[index].entry)
        others = (f"{folder}/index.html", f"{folder}/provenance.html")
        files = earlier.group(folder, self.groups[folder], others) if earlier else None
        return bool(files) and all(self.tree.keep(path, digest) for path, digest in (files or {}).items())

    def run(self, number: int, index: int) -> dict[str, str]:
        """Writes the pages and the turns of one run."""
        pages = self.editions[number]
        run = pages.runs[index]
        tree = Tree(self.tree.root, self.tree.earlier)
        for page in pages.run_games(run):
            if page.path in tree.files:
                raise CatalogRefused(_TWICE.format(page.path))
            tree.write(page.path, self.renderer.render(page))
        folder = paths.run_root(run.entry)
        rows = downloads.turns(pages.edition, run.entry)
        tree.write(f"{folder}/turns.csv", downloads.to_csv(rows))
        tree.write(f"{folder}/turns.arrow", downloads.to_arrow(downloads.table(rows, downloads.TURN_SCHEMA)))
        run.entry.record.release()
        return tree.files

    def _key(self, entry: Entry) -> str:
        redaction = entry.files.get("redaction.dsse.json")
        return digest_of(
            {
                "made_by": _made_by(),
                "preview": self.options.preview,
                "base_url": self.options.base_url,
                "statement": entry.statement_sha256,
                "redaction": redaction.sha256 if redaction else None,
            }
        )

    # -- the files of an edition

    def _edition_files(self, pages: EditionPages) -> None:
        edition, root = pages.edition, pages.root
        board_rows, trial_rows = downloads.leaderboard(edition), downloads.trials(edition)
        trial_table = downloads.table(trial_rows, downloads.TRIAL_SCHEMA)
        files = {
            "leaderboard.csv": downloads.to_csv(board_rows),
            "leaderboard.json": downloads.to_json(edition, board_rows),
            "differences.csv": downloads.to_csv(downloads.differences(edition, pages.numbers)),
            "trials.csv": downloads.to_csv(trial_rows),
            "trials.arrow": downloads.to_arrow(trial_table),
            "trials.parquet": downloads.to_parquet(trial_table),
            **feeds.citations(edition),
        }
        for path, data in files.items():
            self.tree.write(f"{root}/{path}", data)
        self._turns(pages)
        for entry in edition.entries:
            # The folder is named by the run id as signed, so that a copy of it verifies as it stands.
            for name, file in entry.files.items():
                self._copy(f"{root}/{entry.data_path}/{name}", file)
        own = {path.removeprefix(f"{root}/"): digest for path, digest in self.tree.files.items() if path.startswith(f"{root}/")}
        data_files = {path: digest for path, digest in own.items() if not path.endswith(".html")}
        self.tree.write(f"{root}/dataset.jsonld", feeds.dataset(edition, data_files, self.options.base_url))
        data_files["dataset.jsonld"] = self.tree.files[f"{root}/dataset.jsonld"]
        sums = "".join(f"{digest}  {path}\n" for path, digest in sorted(data_files.items()))
        self.tree.write(f"{root}/SHA256SUMS", sums.encode())

    def _turns(self, pages: EditionPages) -> None:
        folders = [self.tree.root / paths.run_root(run.entry) for run in pages.runs]
        to = [f"{pages.root}/turns.{suffix}" for suffix in ("csv", "arrow", "parquet")]
        parts = [(folder / "turns.csv", folder / "turns.arrow") for folder in folders]
        downloads.join_turns(parts, *(self.tree.place(path) for path in to))
        for path in to:
            self.tree.add(path)

    def _copy(self, path: str, file: catalog.SignedFile) -> None:
        earlier = self.tree.earlier
        if earlier is None or not (earlier.holds(path, file.sha256) and self.tree.keep(path, file.sha256)):
            self.tree.write(path, file.read())

    def _manifest(self) -> None:
        _check_twice(self.tree.files)
        manifest = {
            "made_by": MADE_BY,
            "version": __version__,
            "preview": self.options.preview,
            "groups": self.groups,
            "files": self.tree.files,
        }
        self.tree.place(MANIFEST).write_bytes(json.dumps(manifest, indent=1, sort_keys=True).encode() + b"\n")


_building: list[Making] = []
"""In a process that makes pages, the site that they are for."""

_TWICE = "two pages have the address {}; ids of subjects or cohorts must differ by more than case or a round's suffix"


def _in_process(job: tuple[int, int]) -> dict[str, str]:
    return _building[0].run(*job)


def _check_twice(files: dict[str, str]) -> None:
    """Raises: CatalogRefused: two files whose paths differ by case alone."""
    seen: dict[str, str] = {}
    for path in files:
        if seen.setdefault(path.casefold(), path) != path:
            raise CatalogRefused(_TWICE.format(path))


def _asset(name: str) -> tuple[str, bytes]:
    data = resources.files("deep20ray_publisher").joinpath("static", name).read_bytes()
    stem, _, suffix = name.partition(".")
    return f"assets/{stem}.{sha256(data)[:12]}.{suffix}", data


@cache
def _made_by() -> str:
    """A digest of all that a page is made with besides its run: this package and the libraries that shape its bytes."""
    parts: dict[str, str] = {name: metadata.version(name) for name in ("jinja2", "markupsafe", "pyarrow")}

    def walk(folder: resources.abc.Traversable, at: str) -> None:
        for item in folder.iterdir():
            if item.is_dir() and item.name != "__pycache__":
                walk(item, f"{at}{item.name}/")
            elif item.is_file() and not item.name.endswith(".pyc"):
                parts[f"{at}{item.name}"] = sha256(item.read_bytes())

    walk(resources.files("deep20ray_publisher"), "")
    return digest_of(parts)
