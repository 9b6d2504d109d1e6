"""Real replies with one value replaced or taken away: always an outcome, and never a completion out of an error."""

import copy
from functools import cache
from typing import Any, get_args

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from deep20ray.answers import Role
from deep20ray_actors.config import Dialect, NativeSearch
from deep20ray_actors.outcomes import Completed, Outcome, is_fault
from deep20ray_actors.providers.dialects import DIALECTS
from deep20ray_actors.providers.wire import WireReply
from tests.actors.support import NOW, RECORDED, dumped

yaml = pytest.importorskip("yaml")
pytestmark = pytest.mark.skipif(not RECORDED.is_dir(), reason="the recorded provider exchanges are not here (../shared/data/recorded)")

FILES = {
    "test_anthropic_opus_5_features.yaml": Dialect.ANTHROPIC,
    "test_anthropic_sampling_settings_reach_the_wire.yaml": Dialect.ANTHROPIC,
    "test_anthropic_web_search_tool.yaml": Dialect.ANTHROPIC,
    "test_google_model_web_search_tool.yaml": Dialect.GEMINI,
    "test_google_model_max_tokens_thinking_model_empty_response.yaml": Dialect.GEMINI,
    "test_openai_include_raw_annotations_non_streaming.yaml": Dialect.OPENAI_RESPONSES,
    "test_openai_responses_model_http_error.yaml": Dialect.OPENAI_RESPONSES,
    "test_openai_responses_model_web_search_tool.yaml": Dialect.OPENAI_RESPONSES,
    "test_openrouter_errors_raised.yaml": Dialect.OPENROUTER,
    "test_openrouter_web_search_annotations.yaml": Dialect.OPENROUTER,
    "test_openrouter_web_search_tool_usage.yaml": Dialect.OPENROUTER,
}
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=5,
)


@cache
def real() -> list[tuple[Dialect, int, Any]]:
    return [
        (dialect, exchange["response"]["status"]["code"], exchange["response"]["parsed_body"])
        for name, dialect in FILES.items()
        for exchange in yaml.safe_load((RECORDED / name).read_text())["interactions"]
    ]


def mutate(body: Any, data: st.DataObject) -> None:
    """Replaces or removes one value somewhere inside."""
    place = body
    while True:
        key = data.draw(st.sampled_from(range(len(place)) if isinstance(place, list) else sorted(place)))
        inner = place[key]
        if not isinstance(inner, dict | list) or not inner or data.draw(st.booleans()):
            break
        place = inner
    if data.draw(st.booleans()):
        place[key] = data.draw(JSON)
    else:
        del place[key]


@settings(suppress_health_check=[HealthCheck.too_slow], deadline=None, max_examples=300)
@given(st.data(), st.sampled_from(list(Role)), st.sampled_from([None, NativeSearch(2, ("github.com",))]))
def test_a_real_reply_with_something_wrong_is_an_outcome(data: st.DataObject, role: Role, native: NativeSearch | None) -> None:
    dialect, status, original = data.draw(st.sampled_from(real()))
    body = copy.deepcopy(original)
    mutate(body, data)
    for failing in (False, True):
        if failing:
            body["error"] = {"code": data.draw(st.sampled_from([429, 500, "server_error", None]))}
        got = DIALECTS[dialect].read(WireReply(status, {}, dumped(body)), role, NOW, native)
        assert isinstance(got.outcome, get_args(Outcome))
        assert is_fault(got.outcome) or not got.retry
        if failing or status != 200:
            assert is_fault(got.outcome) and not isinstance(got.outcome, Completed)
