"""Recordings as replies: what a rejected text becomes, which seed gets which reply, and folders that aren't of the form."""

import json
from pathlib import Path

import pytest
from aiohttp.test_utils import TestClient, TestServer

from deep20ray.actions import Ask, Violation, parse
from tests.replay.builder import DATA, made
from tests.replay.recording import RecordingError, convert, faulty, read
from tests.replay.server import application, replies_of

INNER = '{"action":"ASK","question":"a?","name":null,"description":null}'


def test_only_the_envelope_is_taken_off() -> None:
    assert convert('{"result":' + INNER + "}") == INNER
    assert convert(('{"result":' + INNER + "}") * 2) == INNER * 2
    assert convert('{"result":' + INNER + "}\n\n" + '{"result":' + INNER + "}") == INNER + "\n\n" + INNER
    assert convert('{"result":' + INNER + "}<|eos|>") == INNER + "<|eos|>"
    assert convert('```{"result":' + INNER + "}```") == "```" + INNER + "```"
    assert json.loads(convert('{"result":' + INNER + ',"_dummy":1}'))["_dummy"] == 1
    assert convert('{"result":{"action":"ASK","action":"GUESS"}}') == '{"action":"ASK","action":"GUESS"}'
    assert convert('{"result":{"a":[{"b":[]},{}]}}') == '{"a":[{"b":[]},{}]}'
    assert convert('{"result":{}}') == "{}"


@pytest.mark.parametrize(
    "text",
    ["prose", '{"broken', '{"result":{"action":"ASK","question":"a', '{"result":[]}', '{"result":null}', '{"result":1,"result":{}}', ""],
)
def test_what_has_no_envelope_stays(text: str) -> None:
    assert convert(text) == text


def test_a_missing_envelope_stays_a_fault() -> None:
    for text in (INNER, '{"result":' + INNER + "}"):
        found = parse(faulty(text))
        assert isinstance(found, Violation)
        assert found.kind == "wrong_action"
    assert isinstance(parse(convert(INNER)), Ask)


def test_a_folder_of_another_form_is_refused(tmp_path: Path) -> None:
    with pytest.raises(RecordingError, match="not a folder of recorded games"):
        read(tmp_path)


def test_a_shared_seed_stops_the_server(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tests.replay.server.sampling_seed", lambda *parts: 7)
    with pytest.raises(RecordingError, match="share the seed"):
        replies_of(read(made(tmp_path / "data")))


def test_another_salt_makes_other_seeds(tmp_path: Path) -> None:
    folder = made(tmp_path / "data")
    first, second = (replies_of(read(folder, salt))["BX-1", "guesser"] for salt in ("a", "b"))
    assert len(first) == len(second)
    assert first.keys().isdisjoint(second.keys())


async def test_the_seed_alone_is_answered(tmp_path: Path) -> None:
    replies = replies_of(read(made(tmp_path / "data")))
    async with TestClient(TestServer(application(replies))) as client:
        for (run, role), known in replies.items():
            for seed, (text, finish) in list(known.items())[:3]:
                reply = await client.post(f"/{run}/{role}/v1/chat/completions", json={"seed": seed, "messages": ["anything"]})
                choice = (await reply.json())["choices"][0]
                assert (reply.status, choice["message"]["content"], choice["finish_reason"]) == (200, text, finish)
        for url, body in (("/BX-1/guesser", {"seed": 1}), ("/BX-1/guesser", {}), ("/BX-2/guesser", {"seed": seed})):
            reply = await client.post(f"{url}/v1/chat/completions", json=body)
            assert reply.status == 400
            assert "nothing was recorded" in (await reply.json())["error"]["message"]
        first, second = [await (await client.get("/BX-1/search", params={"q": q})).json() for q in ("one", "two")]
        assert first != second


@pytest.mark.skipif(not DATA.is_dir(), reason=f"recorded games are not there ({DATA.name} beside the checkout, under shared/data)")
def test_every_recorded_violation_keeps_its_fault() -> None:
    kinds = {"not_json": 0, "wrong_action": 0}
    strays = 0
    for run in read(DATA).values():
        for game in run.games.values():
            for step in game.steps:
                if step.kind == "violation":
                    found = parse(step.text)
                    assert isinstance(found, Violation)
                    strays += step.stray
                    if not step.stray:
                        assert found.kind == step.violation == step.listed
                        kinds[found.kind] += 1
    assert kinds == {"not_json": 11, "wrong_action": 16}
    assert strays == 5
