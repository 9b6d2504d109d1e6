"""The unit prices of a plan, looked up once, when it is made, and frozen in its document as exact decimal texts.

For each model the first that knows it: the sweep file, its prices file, the list of the package genai-prices as it stood when the
plan was made. Who is on no list has no entry: its cost is unknown, never 0. Nothing here calls: the package is asked for the data that
came with it, and its updates stay off.

An entry::

    {"provider": "anthropic", "endpoint_sha256": "...", "requested_model": "claude-sonnet-4-5",
     "source": "genai-prices 0.2.3", "listed_as": "claude-sonnet-4-5",
     "usd_per_mtok": {"input": {"base": "3", "above": [{"input_tokens": 200000, "usd": "6"}]}, "output": ...},
     "usd_per_thousand_searches": "10"}

A rate is a text, or steps: a call whose input tokens, cached ones included, are more than that many pays the step's price for all.
"""

from collections.abc import Iterator, Mapping
from datetime import datetime
from decimal import Decimal
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from deep20ray.canonical import sha256
from deep20ray_cluster.errors import PlanMismatch, SweepError
from deep20ray_cluster.settings import Search
from deep20ray_cluster.sweep import SUPPORT_ROLES, Account, Price, Sweep, parse_prices

if TYPE_CHECKING:
    from genai_prices.data_snapshot import DataSnapshot
    from genai_prices.types import ModelPrice, TieredPrices

_LISTED = {
    "input": "input_mtok",
    "output": "output_mtok",
    "cache_read": "cache_read_mtok",
    "cache_write_5m": "cache_write_mtok",
    "cache_write_1h": "cache_write_1h_mtok",
}
"""Our rates by the package's names."""


def load_prices(sweep: Sweep, path: Path) -> Mapping[str, Price]:
    """The prices file at ``path``, where the sweep names one; else nothing.

    Raises:
        SweepError: it can't be read, or isn't a file of prices.
    """
    if sweep.sweep.prices_file is None:
        return {}
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "not UTF-8 text"
        raise SweepError(f"{path}: can't be read ({reason}); correct sweep.prices_file") from None
    return parse_prices(text, str(path))


def price_section(sweep: Sweep, shared: Mapping[str, Price], at: datetime) -> dict[str, Any]:
    """The plan document's ``prices``.

    Args:
        shared: the prices file's.
        at: when the plan was made; the package's price of that moment is taken.
    """
    entries = {}
    asked = False
    for account, model in _used(sweep):
        entry, listed = _entry(sweep, shared, account, model, at)
        asked = asked or listed
        if entry is not None:
            key = {"provider": account.kind, "endpoint_sha256": _endpoint(account), "requested_model": model}
            entries[account.kind, account.base_url or "", model] = key | entry
    return {
        "package": _package() if asked else None,
        "models": [entries[key] for key in sorted(entries)],
        "search": _search(sweep.search),
    }


def check_same_list(planned: object, resolved: object) -> None:
    """Refuses to go on with a plan document whose prices came from another version of the package than is installed.

    Raises:
        PlanMismatch: naming both.
    """
    before, after = _list_of(planned), _list_of(resolved)
    if isinstance(before, str) and isinstance(after, str) and before != after:
        name, _, version = before.partition(" ")
        raise PlanMismatch(
            f"the plan's prices are those of {before}, and {after} is installed; install {name}=={version}, or start a new sweep"
        )


def _list_of(document: object) -> object:
    prices = document.get("prices") if isinstance(document, dict) else None
    return prices.get("package") if isinstance(prices, dict) else None


def _used(sweep: Sweep) -> Iterator[tuple[Account, str]]:
    for model in (*sweep.models, *(sweep.support.of(role) for role in SUPPORT_ROLES)):
        yield sweep.accounts[model.account], model.model


def _entry(sweep: Sweep, shared: Mapping[str, Price], account: Account, model: str, at: datetime) -> tuple[dict[str, Any] | None, bool]:
    """A model's prices with their source, or None; and whether the package was asked."""
    if model in sweep.prices:
        return {"source": "sweep file", **_own(sweep.prices[model])}, False
    if model in shared:
        return {"source": f"prices file {Path(sweep.sweep.prices_file or '').name}", **_own(shared[model])}, False
    provider = _lister(account)
    return (None, False) if provider is None else (_from_package(provider, model, at), True)


_LISTERS = {
    "api.openai.com": ("openai", ("openai-chat", "openai-responses")),
    "api.anthropic.com": ("anthropic", ("anthropic",)),
    "generativelanguage.googleapis.com": ("google", ("gemini",)),
    "openrouter.ai": ("openrouter", ("openrouter", "openai-chat")),
}
"""By the host that is asked: the package's name of its provider, and the kinds of account that it serves."""


def _lister(account: Account) -> str | None:
    """The package's name of the provider whose list price a call pays; None for any other server, whose prices are its own, or none."""
    provider, kinds = _LISTERS.get(urlsplit(account.base_url or "").hostname or "", (None, ()))
    return provider if account.kind in kinds else None


def _own(price: Price) -> dict[str, Any]:
    rates = {
        "input": price.input_usd_per_mtok,
        "output": price.output_usd_per_mtok,
        # Cached input costs as much as other input where nothing else is said.
        "cache_read": price.input_usd_per_mtok if price.cache_read_usd_per_mtok is None else price.cache_read_usd_per_mtok,
        "cache_write_5m": price.cache_write_usd_per_mtok,
        "cache_write_1h": price.cache_write_1h_usd_per_mtok,
    }
    written = {"usd_per_mtok": {name: _text(rate) for name, rate in rates.items() if rate is not None}}
    search = price.search_usd_per_thousand
    return written if search is None else written | {"usd_per_thousand_searches": _text(search)}


def _from_package(provider: str, model: str, at: datetime) -> dict[str, Any] | None:
    try:
        _, found = _snapshot().find_provider_model(model, None, provider, None)
    except LookupError:
        return None
    listed = found.get_prices(at)
    rates = {name: rate for name, field in _LISTED.items() if (rate := _listed(listed, field)) is not None}
    if "input" in rates:
        rates.setdefault("cache_read", rates["input"])
    search = _listed(listed, "web_searches_kcount")
    if not rates:
        return None
    entry = {"source": _package(), "listed_as": found.id, "usd_per_mtok": rates}
    return entry | ({"usd_per_thousand_searches": search} if isinstance(search, str) else {})


def _listed(prices: "ModelPrice", field: str) -> str | dict[str, Any] | None:
    price: Decimal | TieredPrices | None = getattr(prices, field)
    if price is None or isinstance(price, Decimal):
        return None if price is None else _text(price)
    steps = [{"input_tokens": tier.start, "usd": _text(tier.price)} for tier in price.tiers]
    return {"base": _text(price.base), "above": steps} if steps else _text(price.base)


def _search(search: Search) -> dict[str, Any] | None:
    """The fee of the stand-alone back-end; None where the provider's own tool searches, at the model's price."""
    if search.kind == "native":
        return None
    if search.usd_per_thousand is not None:
        return {"source": "sweep file", "usd_per_thousand": _text(search.usd_per_thousand)}
    if search.kind in ("searxng", "simulator"):
        return {"source": "self-hosted", "usd_per_thousand": "0"}
    keyless = search.kind == "tavily" and search.api_key is None
    return {"source": "keyless" if keyless else None, "usd_per_thousand": "0" if keyless else None}


def _text(number: float | Decimal) -> str:
    """A number as the shortest plain decimal: what was written, where a float was read from a text."""
    return f"{Decimal(str(number)).normalize():f}"


def _endpoint(account: Account) -> str | None:
    return None if account.base_url is None else sha256(account.base_url.encode())


@cache
def _snapshot() -> "DataSnapshot":
    # One of our own: the package's may be replaced by an update.
    from genai_prices.data import providers
    from genai_prices.data_snapshot import DataSnapshot

    return DataSnapshot(providers=providers, from_auto_update=False)


@cache
def _package() -> str:
    import genai_prices

    return f"genai-prices {genai_prices.__version__}"
