"""From settings to what the actors get: a route per model, and each role's credentials alone; and to the gates their calls go through.

A route's name is opaque; it says nothing about a trial, and the guesser routes don't even name their model.
"""

import stat
from collections.abc import Callable, Mapping, MutableMapping
from pathlib import Path
from typing import Any

from deep20ray.answers import Role
from deep20ray_actors.config import (
    AnthropicSettings,
    Backend,
    CredentialRef,
    Dialect,
    FetchConfig,
    FileCredential,
    LiteralCredential,
    NativeSearch,
    PromptTexts,
    RouteConfig,
    Sampling,
    SearchConfig,
    Timeouts,
)
from deep20ray_actors.messages import Message, ToolMessage
from deep20ray_actors.render import chat_messages
from deep20ray_cluster.errors import SweepError
from deep20ray_cluster.limits import Limits, Weight
from deep20ray_cluster.plan import Plan
from deep20ray_cluster.sweep import SUPPORT_ROLES, Account, Model, Sweep

SEARCH_GATE = "search:"
"""The gate of the search back-end, and the name of its credential. No account can be named so."""
PAGES_GATE = "pages:"
"""The gate of page fetches."""
_PAGES_SPARE = 10.0
"""Seconds that a call for pages may take beyond the time of fetching and of waiting to be read."""


def guesser_route(index: int) -> str:
    """The route of the sweep's n-th model, from 0."""
    return f"g{index}"


def gate_of(model: Model) -> str:
    """The gate that a model's calls go through: its account's, or its limit group's."""
    return model.account if model.limit_group is None else f"{model.account}/{model.limit_group}"


def account_of(sweep: Sweep) -> dict[tuple[Role, str], str]:
    """The gate of each (role, route); the Oracle's searches and page fetches, by their kind of message, have their own."""
    gates = {(Role.GUESSER, guesser_route(index)): gate_of(model) for index, model in enumerate(sweep.models)}
    gates |= {(role, role.value): gate_of(sweep.support.of(role)) for role in SUPPORT_ROLES}
    return gates | {(Role.ORACLE, "search"): SEARCH_GATE, (Role.ORACLE, "pages"): PAGES_GATE}


def limits_of(sweep: Sweep) -> dict[str, Limits]:
    """What is said of each gate: its account's settings, for each of its limit groups alike."""
    models = (*sweep.models, *(sweep.support.of(role) for role in SUPPORT_ROLES))
    search = sweep.search
    tools = {
        SEARCH_GATE: Limits(search.max_concurrency, search.requests_per_minute),
        PAGES_GATE: Limits(search.max_concurrency, adaptive=False),
    }
    return {gate_of(model): _limits(sweep.accounts[model.account]) for model in models} | tools


def _limits(account: Account) -> Limits:
    return Limits(
        account.max_concurrency,
        account.requests_per_minute,
        account.tokens_per_minute,
        account.input_tokens_per_minute,
        account.output_tokens_per_minute,
        account.max_share,
        account.adaptive and account.kind != "simulator",
    )


def seconds_of(sweep: Sweep) -> dict[str, float]:
    """The deadline of a call through each gate, in seconds."""
    tools = {SEARCH_GATE: _search_seconds(sweep), PAGES_GATE: 2 * sweep.search.page_seconds + _PAGES_SPARE}
    models = (*sweep.models, *(sweep.support.of(role) for role in SUPPORT_ROLES))
    return {gate_of(model): sweep.accounts[model.account].call_seconds for model in models} | tools


def weigher(plan: Plan) -> Callable[[Role, str, Message], Weight]:
    """What a role's call by a route weighs: the bytes of what it sends, and its route's ``max_output_tokens``."""
    most = {(Role.GUESSER, guesser_route(index)): model.max_output_tokens for index, model in enumerate(plan.sweep.models)}
    most |= {(role, role.value): plan.sweep.support.of(role).max_output_tokens for role in SUPPORT_ROLES}
    texts = {role: PromptTexts(prompt.system, prompt.guide, prompt.reminder, prompt.queries) for role, prompt in plan.prompts.items()}

    def weigh(role: Role, route: str, message: Message) -> Weight:
        if isinstance(message, ToolMessage):
            return Weight()
        return Weight(sum(len(turn["content"].encode()) for turn in chat_messages(message, texts[role])), most[role, route])

    return weigh


def _search_seconds(sweep: Sweep) -> float:
    return sweep.search.try_seconds * (sweep.search.attempts + 2)


def credentials_of(sweep: Sweep, environ: MutableMapping[str, str], *, here: bool = True) -> dict[str, CredentialRef]:
    """Each account's credential, and the search's. Every name that the sweep mentions is taken out of ``environ``, so that no worker
    inherits it. ``here``: whether the actors run on this host, so that their files must be here too.

    Raises:
        SweepError: a variable that isn't set, or a file that isn't there or that others may read.
    """
    references = {f"accounts.{name}.api_key": (name, account.api_key) for name, account in sweep.accounts.items()}
    references["search.api_key"] = (SEARCH_GATE, sweep.search.api_key)
    taken: dict[str, str] = {}
    return {name: _credential(where, reference, environ, taken, here=here) for where, (name, reference) in references.items()}


def _credential(
    where: str, reference: str | None, environ: MutableMapping[str, str], taken: dict[str, str], *, here: bool
) -> CredentialRef:
    if reference is None:
        return None
    kind, _, value = reference.partition(":")
    if kind == "file":
        path = Path(value).expanduser()
        return _file(where, path) if here else FileCredential(str(path.absolute()))
    key = taken.get(value) or environ.pop(value, "")
    if not key.strip():
        raise SweepError(f"{where}: the environment variable {value} is not set; export it, or use file:PATH")
    taken[value] = key
    return LiteralCredential(key.strip())


def routes_of(plan: Plan, credentials: Mapping[str, CredentialRef], simulator: str | None) -> dict[Role, dict[str, RouteConfig]]:
    """Every role's routes. ``simulator`` is the embedded simulator's address where the sweep uses it."""
    sweep = plan.sweep
    guessers = {
        guesser_route(index): _route(plan, Role.GUESSER, guesser_route(index), model, credentials, simulator)
        for index, model in enumerate(sweep.models)
    }
    support = {role: {role.value: _route(plan, role, role.value, sweep.support.of(role), credentials, simulator)} for role in SUPPORT_ROLES}
    return {Role.GUESSER: guessers, **support}


def _route(plan: Plan, role: Role, name: str, model: Model, credentials: Mapping[str, CredentialRef], simulator: str | None) -> RouteConfig:
    account = plan.sweep.accounts[model.account]
    prompt = plan.prompts[role]
    return RouteConfig(
        route=name,
        role=role,
        base_url=account.base_url or f"{simulator}/v1",
        model=model.model,
        prompt=PromptTexts(prompt.system, prompt.guide, prompt.reminder, prompt.queries),
        tokens=plan.edition.tokens,
        max_output_tokens=model.max_output_tokens,
        dialect=Dialect.OPENAI_CHAT if account.kind == "simulator" else Dialect(account.kind),
        anthropic=AnthropicSettings(account.anthropic_auth, account.anthropic_version, model.thinking, account.anthropic_search),
        upstreams=account.upstreams,
        credential=credentials[model.account],
        sampling=Sampling(model.temperature, model.top_p),
        effort=model.effort,
        output_limit_field=account.output_limit_field,
        send_seed=model.send_seed,
        timeouts=Timeouts(connect=account.connect_seconds, wire=account.try_seconds, call=account.call_seconds),
        attempts=account.attempts,
        **(_research(plan.sweep, credentials.get(SEARCH_GATE), simulator) if role is Role.ORACLE else {}),
    )


def _research(sweep: Sweep, credential: CredentialRef, simulator: str | None) -> dict[str, Any]:
    """What the Oracle's route has beyond the others': where it searches, and how it fetches pages."""
    search = sweep.search
    fetch = FetchConfig(
        max_text=search.page_chars,
        excluded_domains=search.excluded_domains,
        seconds=search.page_seconds,
        user_agent=search.user_agent,
        allow_loopback=search.allow_loopback,
    )
    found: dict[str, Any] = {"fetch": fetch if search.fetch_pages else None}
    if search.kind == "native":
        return found | {"native": NativeSearch(search.max_queries, search.excluded_domains)}
    config = SearchConfig(
        base_url=search.address or str(simulator),
        backend=Backend.SEARXNG if search.kind == "simulator" else Backend(search.kind),
        credential=credential,
        max_results=search.max_results,
        excluded_domains=search.excluded_domains,
        timeouts=Timeouts(wire=search.try_seconds, call=_search_seconds(sweep)),
        attempts=search.attempts,
    )
    return found | {"search": config}


def _file(where: str, path: Path) -> FileCredential:
    try:
        status = path.stat()
    except OSError as error:
        raise SweepError(f"{where}: {path}: can't be read ({error.strerror}); give the path of a file that holds the key alone") from None
    if not stat.S_ISREG(status.st_mode) or not status.st_size:
        raise SweepError(f"{where}: {path}: {'is empty' if stat.S_ISREG(status.st_mode) else 'is no file'}; it must hold the key alone")
    if status.st_mode & 0o077:
        raise SweepError(f"{where}: {path}: group or others may read it; chmod 600 it")
    return FileCredential(str(path.absolute()))
