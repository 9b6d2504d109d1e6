"""A scripted game of five roles against aimock: by the role hosts alone, and by the whole system."""

import json
import os
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pytest_httpserver import HTTPServer

from deep20ray.actions import Guess, parse
from deep20ray.adjudication import Consult, decide
from deep20ray.answers import Role, Token
from deep20ray.editions import edition
from deep20ray.game import Answer, Ended, Game, GuesserTurn, Reason, Ruling
from deep20ray.subjects import TrustedSubject
from deep20ray_actors import evidence, replies
from deep20ray_actors.config import PromptTexts, SearchConfig
from deep20ray_actors.messages import GuesserMessage, JudgeMessage, Message, OracleMessage, ReviewerMessage, SearchMessage, ValidatorMessage
from deep20ray_actors.outcomes import CallResult, Completed, Found
from deep20ray_prompts import load
from tests.actors.support import call, host, results_of, route
from tests.wire import script
from tests.wire.aimock import Aimock, aimock

SUBJECT = TrustedSubject(script.COMET, ("1P/Halley",), "The periodic comet. Not a ship or a band of that name.")


@pytest.fixture
def searxng(httpserver: HTTPServer) -> str:
    """A search server with one page."""
    httpserver.expect_request("/search").respond_with_json({"query": "", "results": [script.PAGE]})
    return httpserver.url_for("").rstrip("/")


class ByHand:
    """A table in a few lines: the rules and five role hosts, nothing between."""

    def __init__(self, server: Aimock, searxng: str) -> None:
        self._server, self._searxng = server, searxng

    async def ask(self, role: Role, message: Message) -> CallResult:
        prompt = load(role.value, "1.1", "evidence-or-knowledge" if role in (Role.ORACLE, Role.REVIEWER, Role.JUDGE) else None)
        config = route(
            role,
            self._server.base_url,
            model=f"scripted-{role.value}",
            prompt=PromptTexts(prompt.system, prompt.guide, prompt.reminder),
            search=SearchConfig(self._searxng) if role is Role.ORACLE else None,
        )
        (result,) = await results_of(host(role, config), [call(message)])
        return result

    async def text(self, role: Role, message: Message) -> str:
        outcome = (await self.ask(role, message)).outcome
        assert isinstance(outcome, Completed), outcome
        return outcome.text

    async def token(self, question: str) -> Token:
        known: dict[str, Token] = {}
        items: tuple[Any, ...] = ()
        tokens = tuple(Token)
        while isinstance(step := decide(**known), Consult):
            if step.role is Role.ORACLE:
                found = (await self.ask(Role.ORACLE, SearchMessage.of(SUBJECT, question))).outcome
                assert isinstance(found, Found)
                said = replies.oracle_answer(
                    await self.text(Role.ORACLE, OracleMessage.of(SUBJECT, question, found.results)), tokens, found.results
                )
                assert said is not None
                items = tuple(item.item for item in evidence.keep(said.evidence, evidence.held_results(found.results)))
                known["oracle"] = said.token
            else:
                kind = ReviewerMessage if step.role is Role.REVIEWER else JudgeMessage
                opinion = replies.reviewed_answer(await self.text(step.role, kind.of(SUBJECT, question, items)), tokens)
                assert opinion is not None
                known[step.role.value] = opinion.token
        return step.token

    async def verdict(self, guess: Guess) -> Any:
        ruling = replies.validated_guess(await self.text(Role.VALIDATOR, ValidatorMessage.of(SUBJECT, guess)))
        assert ruling is not None
        return ruling.verdict

    async def play(self) -> Ended:
        game = Game.start(edition("1.1"), "thing", "0a1b2c")
        while True:
            match game.needs:
                case Ended() as ended:
                    return ended
                case GuesserTurn(view):
                    game = game.after(parse(await self.text(Role.GUESSER, GuesserMessage.of(view))))
                case Answer(ask):
                    game = game.after(await self.token(ask.question))
                case Ruling(guess):
                    game = game.after(await self.verdict(guess))


async def test_the_role_hosts_play_the_script(tmp_path: Path, searxng: str) -> None:
    with aimock(script.fixtures(), tmp_path) as server:
        ended = await ByHand(server, searxng).play()
        seen = server.journal()
    assert (ended.reason, ended.counted, ended.score) == (Reason.SUCCESS, script.COUNTED, script.COUNTED)
    assert Counter(entry["body"]["model"] for entry in seen) == script.CALLS
    assert [entry["response"]["status"] for entry in seen].count(429) == 1


async def test_an_unscripted_request_is_a_fault_and_no_answer(tmp_path: Path, searxng: str) -> None:
    with aimock(script.fixtures()[:1], tmp_path) as server:
        result = await ByHand(server, searxng).ask(Role.VALIDATOR, ValidatorMessage.of(SUBJECT, Guess(*script.WRONG)))
    assert not isinstance(result.outcome, Completed)


@pytest.mark.full
def test_the_whole_system_plays_the_script(tmp_path: Path, searxng: str) -> None:
    (tmp_path / "comet.toml").write_text(script.COHORT)
    with aimock(script.fixtures(), tmp_path) as server:
        (tmp_path / "sweep.toml").write_text(script.sweep(server.base_url, searxng))
        done = deep20ray("run", tmp_path / "sweep.toml", "--out", tmp_path / "out", "--progress", "none")
        seen = server.journal()
    (run,) = (tmp_path / "out" / "runs").iterdir()
    assert done.stdout.strip().endswith(run.name)

    assert Counter(entry["body"]["model"] for entry in seen) == script.CALLS
    check_requests(seen)

    (trial,) = rows(run, "trials")
    assert (trial["terminal_reason"], trial["counted_questions"], trial["score"]) == ("success", script.COUNTED, script.COUNTED)
    turns = rows(run, "turns")
    assert [turn["final_token"] or turn["verdict"] for turn in turns] == script.FINAL_TOKENS
    assert [turn["path"] for turn in turns] == ["judged", None, None, "agreed", "oracle_unknown", None]
    assert [(turn["oracle"], turn["reviewer"], turn["judge"]) for turn in turns[:1]] == [("RATHER_YES", "UNKNOWN", "YES")]
    (violation,) = rows(run, "violations")
    assert (violation["kind"], violation["text"], violation["counted"]) == ("not_json", script.PROSE, True)
    (item,) = rows(run, "evidence")
    assert (item["url"], item["excerpt"], item["verified"]) == (script.PAGE["url"], script.EXCERPT, True)
    audits = rows(run, "audits")
    assert [(audit["call"], audit["turn"]) for audit in audits if audit["wire_tries"] == 2] == [("reviewer", 4)]
    assert {audit["served_model"] for audit in audits if audit["call"] == "judge"} == {"judge-served"}
    assert (rows(run, "run")[0]["status"], rows(run, "run")[0]["simulated"]) == ("complete", False)
    for file in run.iterdir():
        assert b"PRIVATE-STATEMENT" not in file.read_bytes(), file.name

    deep20ray("keys", "new", "k", "--dir", tmp_path)
    deep20ray("sign", run, "--key", tmp_path / "k.key")
    assert "verified" in deep20ray("verify", run, "--trust", tmp_path / "k.pub").stdout


def check_requests(seen: list[dict[str, Any]]) -> None:
    """No role was sent anything but its own material; the Guesser's requests offer no tools and never name the subject."""
    for entry in seen:
        body = entry["body"]
        known = {"model", "messages", "response_format", "seed", "max_completion_tokens", "_endpointType"}
        assert set(body) <= known, set(body) - known
        text = json.dumps(body["messages"], ensure_ascii=False)
        assert "PRIVATE-STATEMENT" not in text
        assert script.PROSE not in text
        match body["model"]:
            case "scripted-guesser":
                assert "1P/Halley" not in text
                assert script.PAGE["url"] not in text
            case "scripted-reviewer" | "scripted-judge":
                assert "RATHER_YES" not in body["messages"][1]["content"]
            case "scripted-validator":
                assert script.SKY not in text


def rows(run: Path, table: str) -> list[dict[str, Any]]:
    """A sealed table's rows, read with pyarrow alone."""
    with pa.OSFile(str(run / f"{table}.arrow")) as file:
        return list(pa.ipc.open_file(file).read_all().to_pylist())


def deep20ray(*arguments: object) -> subprocess.CompletedProcess[str]:
    """The command as a user runs it; its errors show."""
    command = [sys.executable, "-m", "deep20ray", *map(str, arguments)]
    done = subprocess.run(command, capture_output=True, text=True, env={**os.environ, "NO_COLOR": "1"}, timeout=300)
    assert done.returncode == 0, done.stderr
    return done
