"""Signed runs and built sites for the publisher's tests, and a reader of the HTML that it writes."""

import unicodedata
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

from deep20ray.canonical import sha256
from deep20ray_artifacts.keys import load_public
from deep20ray_artifacts.signing import NewKey, new_key, sign_run
from deep20ray_publisher import site
from tests.artifacts import builder

DAY = datetime(2026, 12, 1, tzinfo=UTC)

HOSTILE = (
    "<script>alert(1)</script>",
    '"><img src=x onerror=alert(2)>',
    "{{ 7 * 7 }}{% raw %}",
    "right\u202eot left\u2066 zero\u200bwidth tag\U000e0041 esc\x1b[31m nul? line\u2028sep",
    '=HYPERLINK("http://evil.example","x")',
    "z\u0351\u0352\u0353\u0354\u0355\u0356\u0357lgo",
)
HOSTILE_URLS = (
    "java\tscript:alert(3)",
    "data:text/html,<script>alert(4)</script>",
    "https://user:secret@evil.example/",
    "//evil.example/x",
    "https://ok.example/path?q=%22#frag",
)

_SCORES = {"T-0001": [3, 5, 4], "T-0008": [20, 41, 12]}


@dataclass
class World:
    """A folder of runs and the key that signs them."""

    root: Path
    key: NewKey

    @classmethod
    def at(cls, root: Path) -> "World":
        """An empty world with a throwaway key."""
        return cls(root, new_key(root / "keys", "signer", throwaway=True))

    @property
    def runs(self) -> Path:
        """Where run folders stand."""
        return self.root / "runs"

    def add(self, model: str, scores: Mapping[str, Sequence[int]] | None = None, hours: int = 9, **more: Any) -> Path:
        """A signed run that was completed ``hours`` into the day."""
        more = {"name": f"Model {model}", "completed_at": DAY + timedelta(hours=hours), **more}
        return builder.sealed_run(self.runs, self.key.private, model_id=model, scores=_SCORES if scores is None else scores, **more)

    def add_draft(self, draft: builder.RunDraft) -> Path:
        """Seals and signs a draft that a test has changed."""
        folder = builder.recorded(draft).seal(self.runs)
        sign_run(folder, self.key.private)
        return folder

    def build(self, name: str = "site", preview: bool = True) -> Path:
        """The site."""
        out = self.root / name
        site.build([self.runs], [load_public(self.key.public)], out, preview)
        return out


def scripted_draft(**more: Any) -> builder.RunDraft:
    """A run that ends for every reason, with evidence and violations; the same two subjects as in ``World.add``."""
    return builder.draft(**{"model_id": "scripted", "name": "Scripted", "completed_at": DAY + timedelta(hours=9), **more})


def hostile_draft() -> builder.RunDraft:
    """A run whose every free text is hostile."""
    draft = scripted_draft(model_id="hostile", name=HOSTILE[0] + HOSTILE[3])
    texts = [unicodedata.normalize("NFC", text) for text in HOSTILE]  # the action contract normalizes, and verification insists
    asks = [turn for turn in draft.rows["turns"] if turn["kind"] == "ask" and not turn["degenerate"] and not turn["repeated"]]
    for number, turn in enumerate(asks[:2] + asks[-8:]):
        turn["question"] = f"{texts[number % len(texts)]} {number}"
    for number, turn in enumerate(turn for turn in draft.rows["turns"] if turn["kind"] == "guess" and not turn["repeated"]):
        turn["guess_description"] = f"{texts[number % len(texts)]} {number}"
    for turn in draft.rows["turns"]:
        turn["repeated"] = False
    for trial in draft.rows["trials"]:
        trial["repeated_guesses"] = 0
    for number, item in enumerate(draft.rows["evidence"]):
        item["url"] = HOSTILE_URLS[number % len(HOSTILE_URLS)]
        item["excerpt"] = "".join(texts)
    in_order(draft.rows["evidence"])
    for number, row in enumerate(row for row in draft.rows["violations"] if row["text"] is not None):
        row["text"] = texts[number % len(texts)] * (100 if number == 1 else 1)
    return draft


def in_order(evidence: builder.Rows) -> None:
    """Numbers each turn's evidence as it must be: by address, then by the excerpt's digest."""
    places: dict[tuple[str, int], builder.Rows] = {}
    for item in evidence:
        places.setdefault((item["trial_id"], item["turn"]), []).append(item)
    for items in places.values():
        for number, item in enumerate(sorted(items, key=lambda item: (item["url"], sha256(item["excerpt"].encode()))), start=1):
            item["number"] = number


def incomplete_draft(**more: Any) -> builder.RunDraft:
    """A run whose last trial ended by infrastructure and was never played."""
    draft = scripted_draft(model_id="broken", name="Broken off", **more)
    trial = draft.rows["trials"][-1]
    key = trial["trial_id"]
    for table in ("turns", "evidence", "audits", "usage", "violations"):
        draft.rows[table] = [row for row in draft.rows[table] if row["trial_id"] != key]
    trial |= dict.fromkeys(("turns", "asks", "guesses", "rejected_guesses", "repeated_guesses", "violations", "counted_penalties"), 0)
    trial |= {"unknown_answers": 0, "degenerate_questions": 0}
    trial |= {
        "status": "infrastructure",
        "cause": "transport",
        "success": None,
        "terminal_reason": None,
        "counted_questions": None,
        "score": None,
    }
    trial |= {"completed_at": None, "duration_ms": None}
    draft.rows["run"][0] |= {"status": "incomplete", "scored_trials": 5, "completed_at": None}
    draft.facts |= {"status": "incomplete", "completed_at": None}
    return draft


@dataclass
class Html(HTMLParser):
    """What a test asks of a page."""

    ids: list[str] = field(default_factory=list)
    links: list[str] = field(default_factory=list)
    sources: list[str] = field(default_factory=list)
    tags: list[str] = field(default_factory=list)
    attributes: list[tuple[str, str | None]] = field(default_factory=list)
    text: str = ""
    spaced: str = ""

    def __post_init__(self) -> None:
        super().__init__(convert_charrefs=True)

    @classmethod
    def of(cls, path: Path) -> "Html":
        """A parsed file."""
        page = cls()
        page.feed(path.read_text(encoding="utf-8"))
        page.close()
        return page

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.spaced += " "
        self.attributes += attrs
        for name, value in attrs:
            if value is None:
                continue
            if name == "id":
                self.ids.append(value)
            elif name == "href":
                self.links.append(value)
            elif name == "src":
                self.sources.append(value)

    def handle_endtag(self, tag: str) -> None:
        self.spaced += " "

    def handle_data(self, data: str) -> None:
        self.text += data
        self.spaced += data

    @property
    def words(self) -> str:
        """Its text with a space at every tag and white space folded."""
        return " ".join(self.spaced.split())


def html_files(out: Path) -> Iterator[Path]:
    """Every page."""
    return iter(sorted(out.rglob("*.html")))


def only(out: Path, pattern: str) -> Path:
    """The one file of that pattern."""
    (found,) = out.glob(pattern)
    return found
