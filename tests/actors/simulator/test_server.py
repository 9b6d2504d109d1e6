"""The simulator as a process of its own, over real HTTP."""

import json
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import httpx
import pytest

from deep20ray_actors.simulator import players
from deep20ray_actors.simulator.server import FAULTS, Limiter, fault_of

COMMAND = [sys.executable, "-m", "deep20ray_actors.simulator"]


@contextmanager
def simulator(*options: str) -> Iterator[str]:
    process = subprocess.Popen([*COMMAND, "--exit-with-stdin", *options], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert process.stdout is not None
    assert process.stdin is not None
    try:
        yield json.loads(process.stdout.readline())["url"]
        process.stdin.close()
        assert process.wait(20) == 0
    finally:
        process.kill()
        process.wait()
        process.stdout.close()


def body(model: str, content: str, seed: int = 1, **more: Any) -> dict[str, Any]:
    return {"model": model, "seed": seed, "messages": [{"role": "system", "content": "s"}, {"role": "user", "content": content}], **more}


GUESSER = "Category: person\n\nVariation: 0123456789ab"


def test_every_model_answers_and_a_repeat_is_the_same() -> None:
    subject = {"canonical_name": "Moon", "aliases": [], "description": "satellite"}
    asked = json.dumps(
        {"question": "Is the subject round?", "results": [], "evidence": [], "subject": subject, "guess": {"name": "x", "description": "y"}}
    )
    with simulator() as url:
        for model in (*players.STYLES, *players.ADJUDICATORS):
            request = body(model, GUESSER if model in players.STYLES else asked)
            first, second = (httpx.post(f"{url}/v1/chat/completions", json=request) for _ in range(2))
            assert first.status_code == 200
            assert first.json() == second.json()
            usage = first.json()["usage"]
            assert usage["total_tokens"] == usage["prompt_tokens"] + usage["completion_tokens"]
        names = [entry["id"] for entry in httpx.get(f"{url}/v1/models").json()["data"]]
        assert names == [*players.STYLES, *players.ADJUDICATORS]
        assert httpx.get(f"{url}/healthz").json() == {"status": "ok"}


def test_the_schema_says_which_tokens_there_are() -> None:
    schema = {"properties": {"answer": {"enum": ["YES", "NO", "UNKNOWN"]}}}
    form = {"type": "json_schema", "json_schema": {"name": "answer", "strict": True, "schema": schema}}
    subject = {"canonical_name": "Albert Schweitzer", "aliases": [], "description": "d"}
    text = "By most accounts, Albert Schweitzer was born in what was then Germany."
    data = json.dumps(
        {
            "question": "Was the subject born in what was then Germany?",
            "evidence": [{"excerpt": text, "number": 1, "url": "u"}],
            "subject": subject,
        }
    )
    with simulator() as url:
        wide = httpx.post(f"{url}/v1/chat/completions", json=body("sim-judge", data)).json()
        narrow = httpx.post(f"{url}/v1/chat/completions", json=body("sim-judge", data, response_format=form)).json()
    assert json.loads(wide["choices"][0]["message"]["content"])["answer"] == "RATHER_YES"
    assert json.loads(narrow["choices"][0]["message"]["content"])["answer"] == "UNKNOWN"


def test_search_speaks_searxng() -> None:
    with simulator() as url:
        found = httpx.get(f"{url}/search", params={"q": "Moon Is the subject round?", "format": "json"}).json()
        assert all({"url", "title", "content"} <= result.keys() for result in found["results"])
        assert any("Moon is round." in result["content"] for result in found["results"])
        assert httpx.get(f"{url}/search", params={"q": "zzzz qqqq", "format": "json"}).json()["results"] == []
        assert httpx.get(f"{url}/search", params={"q": "Moon"}).status_code == 400


def test_over_the_limit_is_429_with_the_time_to_wait() -> None:
    with simulator("--rpm", "2") as url:
        replies = [httpx.post(f"{url}/v1/chat/completions", json=body("sim-gain", GUESSER, seed)) for seed in range(3)]
    assert [reply.status_code for reply in replies] == [200, 200, 429]
    assert replies[0].headers["x-ratelimit-remaining-requests"] == "1"
    assert 0 < int(replies[2].headers["retry-after"]) <= 60
    assert 0 < int(replies[2].headers["retry-after-ms"]) <= 60_001


def test_a_bad_request_is_refused_and_the_server_lives() -> None:
    with simulator() as url:
        post = f"{url}/v1/chat/completions"
        assert httpx.post(post, content=b"not json").status_code == 400
        assert httpx.post(post, content=b"[" * 200_000).status_code == 400
        assert httpx.post(post, json=body("sim-oracle", "no json here")).status_code == 400
        assert httpx.post(post, json={**body("sim-gain", GUESSER), "messages": None}).status_code == 400
        assert httpx.post(post, json=body("no-such-model", "{}")).status_code == 404
        assert httpx.post(post, json=body("sim-gain", GUESSER)).status_code == 200


def test_a_taken_port_is_one_line_and_exit_2() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        done = subprocess.run([*COMMAND, "--port", str(port)], capture_output=True, text=True, timeout=30, check=False)
    assert done.returncode == 2
    assert done.stdout == ""
    assert done.stderr.count("\n") == 1
    assert str(port) in done.stderr


@pytest.mark.parametrize("option", [("--rpm", "0"), ("--fault-rate", "1.5"), ("--latency-ms", "-1"), ("--port", "70000"), ("--rpm", "x")])
def test_an_option_out_of_range_is_exit_2_without_a_traceback(option: tuple[str, str]) -> None:
    done = subprocess.run([*COMMAND, *option], capture_output=True, text=True, timeout=30, check=False)
    assert done.returncode == 2
    assert "Traceback" not in done.stderr
    assert option[0] in done.stderr


def test_it_ends_on_sigterm_and_where_nobody_holds_its_input() -> None:
    with subprocess.Popen(COMMAND, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        process.stdout.readline()
        process.send_signal(signal.SIGTERM)
        assert process.wait(20) == 0
    done = subprocess.run(
        [*COMMAND, "--exit-with-stdin"], stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=30, check=False
    )
    assert done.returncode == 0
    assert done.stderr == ""


def test_faults_depend_on_how_often_a_body_was_seen_and_end() -> None:
    bodies = [str(number).encode() for number in range(400)]
    first = [fault_of(each, 0, 0.5) for each in bodies]
    assert {fault for fault in first if fault} == set(FAULTS)
    assert 120 < sum(fault is not None for fault in first) < 280
    assert sum(fault_of(each, 1, 0.5) is not None for each in bodies) < sum(fault is not None for fault in first)
    assert not any(fault_of(each, 2, 1.0) for each in bodies)
    assert not any(fault_of(each, 0, 0.0) for each in bodies)


def test_a_faulty_server_still_answers_within_three_tries() -> None:
    with simulator("--fault-rate", "0.9") as url, httpx.Client() as client:
        failed = 0
        for seed in range(15):
            for _ in range(3):
                try:
                    reply = client.post(f"{url}/v1/chat/completions", json=body("sim-gain", GUESSER, seed))
                except httpx.TransportError:
                    failed += 1
                    continue
                if reply.status_code == 200 and reply.json().get("choices"):
                    break
                failed += 1
            else:
                pytest.fail("the third try must work")
        assert failed > 5


def test_the_limiter_slides() -> None:
    now = [0.0]
    limiter = Limiter(2, lambda: now[0])
    assert [limiter.admit(), limiter.admit()] == [0, 0]
    now[0] = 10
    assert limiter.admit() == 50
    now[0] = 60.5
    assert limiter.admit() == 0
