"""Pages to bytes: Jinja2 with autoescape and strict names. Templates are the only source of markup besides ``text.visible``."""

import posixpath
from collections.abc import Callable
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined

from deep20ray.statistics import reuse_width_factor
from deep20ray_publisher import __version__, charts, formats, paths, turnmap
from deep20ray_publisher.pages import Page
from deep20ray_publisher.text import visible, visible_plain

CSP = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'none'; base-uri 'none'; form-action 'none'; "
    "require-trusted-types-for 'script'; trusted-types 'none'"
)
"""No inline script or style, nothing from elsewhere, no string that becomes markup."""

TABS = (
    ("Leaderboard", "index.html"),
    ("Statistics", "statistics.html"),
    ("Compare", "compare/index.html"),
    ("Subjects", "subjects/index.html"),
    ("Methodology", "methodology.html"),
    ("Data", "verify.html"),
)
RESULTS = (
    ("Score", "index.html"),
    ("Stability", "stability.html"),
    ("Reliability", "reliability.html"),
    ("Cost", "cost.html"),
    ("Time", "time.html"),
    ("Efficiency", "efficiency.html"),
)
"""The views of the results; the leaderboard is the first of them."""


class Renderer:
    """Renders pages. ``assets`` maps a logical asset name to its address in the site."""

    def __init__(self, assets: dict[str, str], preview: bool, base_url: str | None) -> None:
        self._environment = Environment(
            loader=PackageLoader("deep20ray_publisher"), autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True
        )
        self._environment.filters |= {
            "visible": visible,
            "plain": visible_plain,
            "n": formats.number,
            "whole": formats.whole,
            "percent": formats.percent,
            "usd": formats.usd,
            "usd_short": formats.usd_short,
            "duration": formats.duration,
            "day": formats.day,
            "moment": formats.moment,
        }
        self._environment.globals |= {
            "CSP": CSP,
            "VERSION": __version__,
            "assets": assets,
            "preview": preview,
            "base_url": base_url,
            "TABS": TABS,
            "RESULTS": RESULTS,
            "RESULT_TABS": frozenset(target for _, target in RESULTS),
            "KINDS": {token: turnmap.token_kind(token) for token in formats.TOKEN_LABELS},
            "STRIP_STEP": turnmap.STRIP_STEP,
            "reuse_factor": reuse_width_factor,
            "paths": paths,
            "charts": charts,
            "TOKEN_LABELS": formats.TOKEN_LABELS,
            "REASONS": formats.REASONS,
            "VIOLATION_LABELS": formats.VIOLATION_LABELS,
            "ROLE_LABELS": formats.ROLE_LABELS,
            "REDACTED_LABELS": formats.REDACTED_LABELS,
        }

    def render(self, page: Page) -> bytes:
        """One page's bytes."""
        values: dict[str, Any] = {**page.values, "page": page, "edition": page.edition, "url": _links_from(page.path)}
        return self._environment.get_template(page.template).render(values).encode()


def _links_from(page: str) -> Callable[[str], str]:
    """Relative links from a page; those to its own folder, which are most, without a search for the way."""
    folder = posixpath.dirname(page)
    own = f"{folder}/"

    def url(target: str) -> str:
        if folder and target.startswith(own) and "/" not in target[len(own) :]:
            return target[len(own) :]
        return paths.relative(page, target)

    return url
