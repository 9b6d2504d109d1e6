"""Bodies of the shape that vLLM and Ollama answer chat completions with, over a socket. No such server was driven here: shapes alone."""

import asyncio
from typing import Any

import pytest
from pytest_httpserver import HTTPServer

from deep20ray.answers import Role
from deep20ray_actors.config import Dialect
from deep20ray_actors.outcomes import CallResult, Completed, Empty, Rejected, ServerFault, Truncated, Usage
from deep20ray_actors.providers.features import Server
from tests.actors.support import MESSAGES, call, dumped, host, results_of, route
from tests.wire import sdk

ANSWER = '{"answer":"NO","basis":"knowledge","statement":"A comet."}'


def vllm(content: str | None, finish: str = "stop", **message: Any) -> dict[str, Any]:
    """Its nulls, empty lists and members of its own; reasoning under the older name or the newer."""
    turn = {"role": "assistant", "content": content, "refusal": None, "annotations": None, "audio": None, "function_call": None}
    choice = {"index": 0, "message": turn | {"tool_calls": []} | message, "logprobs": None, "finish_reason": finish, "stop_reason": None}
    return {
        "id": "chatcmpl-9df9",
        "object": "chat.completion",
        "created": 1,
        "model": "org/model-1",
        "choices": [choice | {"token_ids": None}],
        "service_tier": None,
        "system_fingerprint": None,
        "usage": {"prompt_tokens": 40, "total_tokens": 52, "completion_tokens": 12, "prompt_tokens_details": None},
        "prompt_logprobs": None,
        "prompt_token_ids": None,
        "kv_transfer_params": None,
    }


def ollama(content: str, finish: str = "stop", **message: Any) -> dict[str, Any]:
    """Its constant fingerprint and bare usage."""
    return {
        "id": "chatcmpl-768",
        "object": "chat.completion",
        "created": 1,
        "model": "model-1:latest",
        "system_fingerprint": "fp_ollama",
        "choices": [{"index": 0, "message": {"role": "assistant", "content": content, **message}, "finish_reason": finish}],
        "usage": {"prompt_tokens": 40, "completion_tokens": 12, "total_tokens": 52},
    }


def heard(server: HTTPServer, status: int, body: Any) -> CallResult:
    server.expect_request("/v1/chat/completions").respond_with_data(dumped(body), status, content_type="application/json")
    config = route(Role.JUDGE, server.url_for("/v1"), attempts=2, output_limit_field="max_tokens")
    (result,) = asyncio.run(results_of(host(Role.JUDGE, config), [call(MESSAGES[Role.JUDGE])]))
    server.clear()
    return result


def check(server: HTTPServer, body: dict[str, Any], expected: Any, reasoning: str | None) -> None:
    result = heard(server, 200, body)
    assert result.outcome == expected and result.audit.reasoning == reasoning
    assert result.audit.usage == Usage(40, 0, 0, 0, 12, 0) and result.audit.served_model == body["model"]
    sdk.MODELS[Dialect.OPENAI_CHAT].model_validate(body)


@pytest.mark.hosted(Server.VLLM, Dialect.OPENAI_CHAT)
def test_replies_of_vllm_s_shape(httpserver: HTTPServer) -> None:
    check(httpserver, vllm(ANSWER), Completed(ANSWER), None)
    check(httpserver, vllm(ANSWER, reasoning_content="hm"), Completed(ANSWER), "hm")
    check(httpserver, vllm(ANSWER, reasoning="hm"), Completed(ANSWER), "hm")
    check(httpserver, vllm(None, "length", reasoning="hm"), Truncated(None, "length", reasoning_only=True), "hm")
    check(httpserver, vllm(None), Empty(), None)


@pytest.mark.hosted(Server.OLLAMA, Dialect.OPENAI_CHAT)
def test_replies_of_ollama_s_shape(httpserver: HTTPServer) -> None:
    check(httpserver, ollama(ANSWER), Completed(ANSWER), None)
    check(httpserver, ollama(ANSWER, reasoning="hm"), Completed(ANSWER), "hm")
    check(httpserver, ollama("", "length", reasoning="hm"), Truncated(None, "length", reasoning_only=True), "hm")
    assert heard(httpserver, 200, ollama(ANSWER)).audit.fingerprint == "fp_ollama"


@pytest.mark.hosted(Server.VLLM, Dialect.OPENAI_CHAT)
@pytest.mark.hosted(Server.OLLAMA, Dialect.OPENAI_CHAT)
@pytest.mark.parametrize(
    ("status", "body", "kind", "tries"),
    [
        (400, {"object": "error", "message": "too long", "type": "BadRequestError", "param": None, "code": 400}, Rejected, 1),
        (400, {"error": {"message": "too long", "type": "BadRequestError", "param": None, "code": 400}}, Rejected, 1),
        (404, {"error": {"message": 'model "x" not found', "type": "not_found_error", "param": None, "code": None}}, Rejected, 1),
        (500, {"error": {"message": "no memory", "type": "api_error", "param": None, "code": None}}, ServerFault, 2),
        (503, {"error": {"message": "loading", "type": "unavailable_error", "code": 503}}, ServerFault, 2),
    ],
)
def test_errors_of_their_shapes(httpserver: HTTPServer, status: int, body: Any, kind: type, tries: int) -> None:
    result = heard(httpserver, status, body)
    assert type(result.outcome) is kind and result.audit.wire_tries == tries
