"""Replies that real providers gave, as far as they speak chat completions."""

from typing import Any

import pytest

from deep20ray.answers import Role
from deep20ray_actors.config import NativeSearch
from deep20ray_actors.outcomes import Completed, Malformed, Throttled
from deep20ray_actors.providers import openrouter
from deep20ray_actors.providers.chat import read
from deep20ray_actors.providers.wire import Reading, WireReply
from tests.actors.support import NOW, RECORDED, dumped

yaml = pytest.importorskip("yaml")
pytestmark = pytest.mark.skipif(not RECORDED.is_dir(), reason="the recorded provider exchanges are not here (../shared/data/recorded)")


def replies(name: str) -> list[WireReply]:
    exchanges: list[dict[str, Any]] = yaml.safe_load((RECORDED / name).read_text())["interactions"]
    answers = [exchange["response"] for exchange in exchanges]
    return [
        WireReply(answer["status"]["code"], {key: values[0] for key, values in answer["headers"].items()}, dumped(answer["parsed_body"]))
        for answer in answers
    ]


def readings(name: str, role: Role) -> list[Reading]:
    return [read(reply, role, NOW) for reply in replies(name)]


def test_a_throttled_upstream() -> None:
    got = readings("test_openrouter_errors_raised.yaml", Role.GUESSER)
    assert len(got) == 3 and all(isinstance(each.outcome, Throttled) and each.retry for each in got)
    assert all("gemini" not in repr(each.outcome) for each in got)


@pytest.mark.parametrize("name", ["test_openrouter_web_search_annotations.yaml", "test_openrouter_web_search_tool_usage.yaml"])
def test_one_that_searched_unasked_is_found_out_by_citations_or_by_usage_alone(name: str) -> None:
    for role in Role:
        (got,) = readings(name, role)
        assert isinstance(got.outcome, Malformed) and not got.retry


def test_usage_and_cost_of_an_oracle_with_a_search_of_its_own() -> None:
    (reply,) = replies("test_openrouter_web_search_annotations.yaml")
    got = openrouter.read(reply, Role.ORACLE, NOW, NativeSearch(1))
    assert isinstance(got.outcome, Completed) and got.outcome.text == "https://github.com/pydantic/pydantic-ai"
    assert (got.usage.input_fresh, got.usage.output_visible, got.usage.searches, got.reported_cost_microusd) == (2315, 40, 1, 7637)
    assert got.served_model == "deepseek/deepseek-chat@OpenAI"


def test_a_reply_of_another_protocol_is_malformed() -> None:
    got = readings("test_openai_include_raw_annotations_non_streaming.yaml", Role.GUESSER)
    assert all(isinstance(each.outcome, Malformed) for each in got)
