"""The exchanges that real providers really had, read in place where they are; tests that need them are skipped where they are not."""

from dataclasses import dataclass
from functools import cache
from typing import Any
from urllib.parse import urlsplit

import pytest

from deep20ray_actors.config import Dialect
from tests.actors.support import RECORDED

needed = pytest.mark.skipif(not RECORDED.is_dir(), reason="the recorded provider exchanges are not here (../shared/data/recorded)")

ANTHROPIC, GEMINI, RESPONSES, OPENROUTER = Dialect.ANTHROPIC, Dialect.GEMINI, Dialect.OPENAI_RESPONSES, Dialect.OPENROUTER
FILES: dict[str, tuple[Dialect, int]] = {
    "test_anthropic_opus_5_features": (ANTHROPIC, 1),
    "test_anthropic_sampling_settings_reach_the_wire": (ANTHROPIC, 1),
    "test_anthropic_web_search_tool": (ANTHROPIC, 2),
    "test_google_model_max_tokens_thinking_model_empty_response": (GEMINI, 1),
    "test_google_model_web_search_tool": (GEMINI, 2),
    "test_openai_include_raw_annotations_non_streaming": (RESPONSES, 2),
    "test_openai_responses_model_http_error": (RESPONSES, 1),
    "test_openai_responses_model_web_search_tool": (RESPONSES, 2),
    "test_openrouter_errors_raised": (OPENROUTER, 3),
    "test_openrouter_web_search_annotations": (OPENROUTER, 1),
    "test_openrouter_web_search_tool_usage": (OPENROUTER, 1),
    "test_pause_turn_web_search_vcr": (ANTHROPIC, 2),
}
"""Each file's dialect and its number of exchanges."""
KEYS = [(name, number) for name, (_, count) in FILES.items() for number in range(count)]
"""Every exchange, as (file, number from 0)."""


@dataclass(frozen=True)
class Exchange:
    """A request and its reply. Headers of replies were filtered where they were recorded."""

    dialect: Dialect
    path: str
    request: dict[str, Any]
    status: int
    headers: dict[str, str]
    body: Any

    @property
    def searched(self) -> bool:
        """Whether the provider's own search was given."""
        return bool(self.request.get("tools"))


@cache
def exchanges(name: str) -> tuple[Exchange, ...]:
    """A file's exchanges, in order."""
    yaml = pytest.importorskip("yaml")
    loaded = yaml.load((RECORDED / f"{name}.yaml").read_text(), getattr(yaml, "CSafeLoader", yaml.SafeLoader))
    return tuple(
        Exchange(
            FILES[name][0],
            urlsplit(each["request"]["uri"]).path,
            each["request"]["parsed_body"],
            each["response"]["status"]["code"],
            {key.lower(): values[0] for key, values in each["response"]["headers"].items()},
            each["response"]["parsed_body"],
        )
        for each in loaded["interactions"]
    )
