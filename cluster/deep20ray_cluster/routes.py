"""From settings to what the actors get: a route per model, and each role's credentials alone.

A route's name is opaque; it says nothing about a trial, and the guesser routes don't even name their model.
"""

from collections.abc import Mapping, MutableMapping
from pathlib import Path

from deep20ray.answers import Role
from deep20ray_actors.config import (
    AnthropicSettings,
    CredentialRef,
    Dialect,
    FileCredential,
    LiteralCredential,
    PromptTexts,
    RouteConfig,
    Sampling,
    SearchConfig,
    Timeouts,
)
from deep20ray_cluster.errors import SweepError
from deep20ray_cluster.plan import Plan
from deep20ray_cluster.sweep import SUPPORT_ROLES, Model, Sweep

SEARCH_GATE = "search:"
"""The gate of the search back-end. No account can be named so."""


def guesser_route(index: int) -> str:
    """The route of the sweep's n-th model, from 0."""
    return f"g{index}"


def account_of(sweep: Sweep) -> dict[tuple[Role, str], str]:
    """The gate of each (role, route); the Oracle's searches have their own."""
    accounts = {(Role.GUESSER, guesser_route(index)): model.account for index, model in enumerate(sweep.models)}
    accounts |= {(role, role.value): sweep.support.of(role).account for role in SUPPORT_ROLES}
    return accounts | {(Role.ORACLE, "search"): SEARCH_GATE}


def seconds_of(sweep: Sweep) -> dict[str, float]:
    """The deadline of a call through each gate, in seconds."""
    return {name: account.call_seconds for name, account in sweep.accounts.items()} | {SEARCH_GATE: _search_seconds(sweep)}


def _search_seconds(sweep: Sweep) -> float:
    return sweep.search.try_seconds * (sweep.search.attempts + 2)


def credentials_of(sweep: Sweep, environ: MutableMapping[str, str]) -> dict[str, CredentialRef]:
    """Each account's credential. Every name that the sweep mentions is taken out of ``environ``, so that no worker inherits it.

    Raises:
        SweepError: a variable that isn't set, or a file that isn't there or that others may read.
    """
    credentials: dict[str, CredentialRef] = {}
    taken: dict[str, str] = {}
    for name, account in sweep.accounts.items():
        if account.api_key is None:
            credentials[name] = None
            continue
        kind, _, value = account.api_key.partition(":")
        if kind == "file":
            credentials[name] = _file(name, Path(value).expanduser())
            continue
        key = taken.get(value) or environ.pop(value, "")
        if not key.strip():
            raise SweepError(f"accounts.{name}.api_key: the environment variable {value} is not set; export it, or use file:PATH")
        taken[value] = key
        credentials[name] = LiteralCredential(key.strip())
    return credentials


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
        prompt=PromptTexts(prompt.system, prompt.guide, prompt.reminder),
        tokens=plan.edition.tokens,
        max_output_tokens=model.max_output_tokens,
        dialect=Dialect.OPENAI_CHAT if account.kind == "simulator" else Dialect(account.kind),
        anthropic=AnthropicSettings(account.anthropic_auth, account.anthropic_version, model.thinking),
        upstreams=account.upstreams,
        credential=credentials[model.account],
        sampling=Sampling(model.temperature, model.top_p),
        effort=model.effort,
        output_limit_field=account.output_limit_field,
        send_seed=model.send_seed,
        timeouts=Timeouts(connect=account.connect_seconds, wire=account.try_seconds, call=account.call_seconds),
        attempts=account.attempts,
        search=_search(plan.sweep, simulator) if role is Role.ORACLE else None,
    )


def _search(sweep: Sweep, simulator: str | None) -> SearchConfig:
    search = sweep.search
    return SearchConfig(
        base_url=search.base_url or str(simulator),
        max_results=search.max_results,
        excluded_domains=search.excluded_domains,
        timeouts=Timeouts(wire=search.try_seconds, call=_search_seconds(sweep)),
        attempts=search.attempts,
    )


def _file(account: str, path: Path) -> FileCredential:
    where = f"accounts.{account}.api_key: {path}"
    try:
        mode = path.stat().st_mode
    except OSError as error:
        raise SweepError(f"{where}: can't be read ({error.strerror})") from None
    if mode & 0o077:
        raise SweepError(f"{where}: group or others may read it; chmod 600 it")
    return FileCredential(str(path.absolute()))
