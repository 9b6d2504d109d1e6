"""Every dialect against aimock, a server by others: five contestants, one a dialect, and support roles on four more ways, whole system."""

import json
import urllib.request
from collections import Counter
from pathlib import Path
from typing import Any

from pytest_httpserver import HTTPServer

from deep20ray_actors.config import Dialect
from tests.actors.dialects import BASES
from tests.wire import script
from tests.wire.aimock import aimock
from tests.wire.test_aimock import deep20ray, rows

SUPPORT = {
    "oracle": Dialect.OPENAI_RESPONSES,
    "reviewer": Dialect.GEMINI,
    "judge": Dialect.OPENROUTER,
    "validator": Dialect.ANTHROPIC,
}
PATHS = {
    "/v1/chat/completions": Dialect.OPENAI_CHAT,
    "/v1/responses": Dialect.OPENAI_RESPONSES,
    "/v1/messages": Dialect.ANTHROPIC,
    "/api/v1/chat/completions": Dialect.OPENROUTER,
}


def sweep(url: str, searxng: str) -> str:
    """The scripted game's sweep, with an account of each kind and a contestant on each."""
    head, _, rest = script.sweep(url, searxng).partition("[accounts.aimock]")
    search = rest[rest.index("[search]") : rest.index("[support.")]
    accounts = "".join(f'[accounts.{kind}]\nkind = "{kind}"\nbase_url = "{url}{BASES[kind]}"\n' for kind in Dialect)
    support = "".join(f'[support.{role}]\naccount = "{kind}"\nmodel = "scripted-{role}"\n' for role, kind in SUPPORT.items())
    models = "".join(f'[[models]]\nid = "on-{kind}"\naccount = "{kind}"\nmodel = "scripted-guesser"\n' for kind in Dialect)
    return f"{head}{accounts}{search}{support}{models}"


def kind_of(entry: dict[str, Any]) -> Dialect:
    """The dialect of a request that aimock saw."""
    return Dialect.GEMINI if entry["path"].startswith("/v1beta/models/") else PATHS[entry["path"]]


def test_a_contestant_on_each_dialect_plays_the_script(tmp_path: Path, httpserver: HTTPServer) -> None:
    httpserver.expect_request("/search").respond_with_json({"query": "", "results": [script.PAGE]})
    (tmp_path / "comet.toml").write_text(script.COHORT)
    with aimock(script.fixtures(), tmp_path) as server:
        (tmp_path / "sweep.toml").write_text(sweep(server.url, httpserver.url_for("").rstrip("/")))
        deep20ray("run", tmp_path / "sweep.toml", "--out", tmp_path / "out", "--progress", "none")
        with urllib.request.urlopen(f"{server.url}/__aimock/journal", timeout=30) as reply:
            seen = json.load(reply)

    runs = sorted((tmp_path / "out" / "runs").iterdir())
    assert len(runs) == len(Dialect)
    for run in runs:
        (trial,) = rows(run, "trials")
        assert (trial["terminal_reason"], trial["counted_questions"], trial["score"]) == ("success", script.COUNTED, script.COUNTED)
        assert [turn["final_token"] or turn["verdict"] for turn in rows(run, "turns")] == script.FINAL_TOKENS
        providers = {role["role"]: role["provider"] for role in rows(run, "roles")}
        assert providers == {"guesser": run.name.split("-on-")[1].rpartition("-")[0], **SUPPORT}

    # aimock turns one of the Reviewer's requests away, once.
    turns, games = len(script.FINAL_TOKENS), len(Dialect)
    sent = Counter(kind_of(entry) for entry in seen if "body" in entry)
    expected = Counter(dict.fromkeys(Dialect, turns))
    expected[SUPPORT["oracle"]] += 3 * games
    expected[SUPPORT["reviewer"]] += 2 * games + 1
    expected[SUPPORT["judge"]] += games
    expected[SUPPORT["validator"]] += 2 * games
    assert sent == expected
