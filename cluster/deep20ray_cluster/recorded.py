"""How each role of a run was called, as its private archive keeps it: routes without credentials, to JSON and back, against the plan."""

import json
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from pydantic import TypeAdapter, ValidationError

from deep20ray.answers import Role
from deep20ray.canonical import digest_of, sha256
from deep20ray_actors.config import Dialect, LiteralCredential, RouteConfig
from deep20ray_artifacts.errors import ArchiveRefused
from deep20ray_cluster.plan import Plan, PlannedRun
from deep20ray_cluster.routes import guesser_route, routes_of
from deep20ray_cluster.sweep import SUPPORT_ROLES
from deep20ray_prompts import texts_digest

_ROUTE = TypeAdapter(RouteConfig)
_NOWHERE = "http://127.0.0.1"
"""The embedded simulator's address, which is another one each time and no part of a request's digest."""


def recorded_routes(plan: Plan, run: PlannedRun) -> dict[str, Any]:
    """Each role's route in a run, as JSON."""
    routes = routes_of(plan, dict.fromkeys((*plan.sweep.accounts, "search:")), _NOWHERE)
    own = guesser_route(plan.runs.index(run))
    return {
        role.value: _ROUTE.dump_python(routes[role][own if role is Role.GUESSER else role.value], mode="json", exclude={"credential": True})
        for role in Role
    }


def read_routes(data: bytes, plan: Mapping[str, Any], run_id: str) -> dict[Role, RouteConfig]:
    """The routes of an archive, which must be those that the public plan tells of.

    Args:
        plan: the run's ``plan.json``.

    Raises:
        ArchiveRefused: they are no routes, or not this plan's.
    """
    try:
        given = json.loads(data)
        routes = {role: _ROUTE.validate_python(given[role.value]) for role in Role}
        planned = next(entry["guesser"] for entry in plan["runs"] if entry["run_id"] == run_id)
        entries = {Role.GUESSER: planned} | {role: plan["support"][role.value] for role in SUPPORT_ROLES}
        keyed = plan["search"]["keyless"] is False
        for role, route in routes.items():
            _check(role, route, entries[role])
    except (ValueError, KeyError, TypeError, StopIteration, RecursionError, ValidationError):
        raise ArchiveRefused(f"run {run_id}: routes.json or plan.json isn't what this version writes; use the one that sealed it") from None
    return {role: _keyed(route) if keyed else route for role, route in routes.items()}


def _keyed(route: RouteConfig) -> RouteConfig:
    """With a stand-in for the search's key: a request says whether there is one."""
    return route if route.search is None else replace(route, search=replace(route.search, credential=LiteralCredential("-")))


def _check(role: Role, route: RouteConfig, entry: Mapping[str, Any]) -> None:
    told = {key: value for key, value in entry.items() if key != "config_sha256"}
    simulated = entry["provider"] == "simulator"
    prompt = route.prompt
    ours: dict[str, Any] = {
        "provider": "simulator" if simulated and route.dialect is Dialect.OPENAI_CHAT else route.dialect.value,
        "endpoint_sha256": None if simulated else sha256(route.base_url.encode()),
        "requested_model": route.model,
        "effort": route.effort,
        "sampling": {name: value for name in ("temperature", "top_p") if (value := getattr(route.sampling, name)) is not None},
        "max_output_tokens": route.max_output_tokens,
        "output_limit_field": route.output_limit_field,
        "send_seed": route.send_seed,
        "prompt_revision": entry["prompt_revision"],
        "prompt_sha256": texts_digest(prompt.system, prompt.guide, prompt.reminder, prompt.queries),
    }
    if route.dialect is Dialect.ANTHROPIC:
        ours["dialect"] = {"version": route.anthropic.version, "thinking": route.anthropic.thinking}
    if route.dialect is Dialect.OPENROUTER:
        ours["dialect"] = {"only": list(route.upstreams), "allow_fallbacks": False, "require_parameters": True}
    if digest_of(told) != entry["config_sha256"]:
        raise ArchiveRefused(f"plan.json: the {role.value}'s config_sha256 isn't that of its entry; the run must be sealed again")
    differing = [name for name in ours.keys() | told.keys() if ours.get(name) != told.get(name)]
    if differing:
        raise ArchiveRefused(f"routes.json: the {role.value}'s {min(differing)} isn't what the public plan says; it belongs to another run")
