"""Real replies of models that searched with their provider's own tool."""

import pytest

from deep20ray.answers import Role
from deep20ray_actors.config import Dialect, NativeSearch
from deep20ray_actors.outcomes import Browsed, Completed, Source, Usage
from deep20ray_actors.providers.dialects import DIALECTS
from deep20ray_actors.providers.wire import Reading, WireReply
from tests.actors.support import NOW, RECORDED, dumped

yaml = pytest.importorskip("yaml")
pytestmark = pytest.mark.skipif(not RECORDED.is_dir(), reason="the recorded provider exchanges are not here (../shared/data/recorded)")


RESPONSES, ANTHROPIC, GEMINI, OPENROUTER = Dialect.OPENAI_RESPONSES, Dialect.ANTHROPIC, Dialect.GEMINI, Dialect.OPENROUTER


def real(dialect: Dialect, name: str, excluded: tuple[str, ...] = (), max_text: int = 2000) -> list[Reading]:
    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    exchanges = yaml.load((RECORDED / name).read_text(), loader)["interactions"]
    native = NativeSearch(5, excluded, max_text)
    replies = [WireReply(200, {}, dumped(exchange["response"]["parsed_body"])) for exchange in exchanges]
    return [DIALECTS[dialect].read(reply, Role.ORACLE, NOW, native) for reply in replies]


def known(readings: list[Reading]) -> list[Browsed]:
    outcomes = [reading.outcome for reading in readings]
    return [outcome.browsed for outcome in outcomes if isinstance(outcome, Completed) and outcome.browsed is not None]


def test_a_real_search_of_anthropic() -> None:
    readings = real(ANTHROPIC, "test_anthropic_web_search_tool.yaml")
    got = known(readings)
    assert len(got) == len(readings) and all(one.searches == reading.usage.searches for one, reading in zip(got, readings, strict=True))
    first = got[0]
    assert (first.searches, len(first.sources), first.barred) == (1, 10, False)
    assert first.sources[0].text.startswith("San Francisco, CA Weather Today WinterCast")
    assert 0 < sum(bool(source.text) for source in first.sources) < 10 and not any(source.whole for source in first.sources)
    outcome = readings[0].outcome
    assert isinstance(outcome, Completed) and outcome.text.startswith("Based on the search results")
    assert known(real(ANTHROPIC, "test_anthropic_web_search_tool.yaml", ("weather.com",)))[0].barred


def test_a_real_search_of_responses() -> None:
    one, two = known(real(RESPONSES, "test_openai_include_raw_annotations_non_streaming.yaml"))
    assert (one.searches, two.searches) == (1, 1)
    title = "Mount Columbia | mountain, Alberta, Canada | Britannica"
    assert one.sources == two.sources == (Source("https://www.britannica.com/place/Mount-Columbia", title, "", False),)
    readings = real(RESPONSES, "test_openai_responses_model_web_search_tool.yaml")
    assert [(one.searches, one.sources) for one in known(readings)] == [(1, ()), (1, ())]
    assert [reading.usage.searches for reading in readings] == [1, 1]


def test_a_real_search_of_gemini() -> None:
    readings = real(GEMINI, "test_google_model_web_search_tool.yaml")
    one, two = known(readings)
    assert (one.searches, [source.title for source in one.sources]) == (1, ["weather.gov", "wunderground.com"])
    assert (two.searches, len(two.sources)) == (1, 3) and not (one.barred or two.barred)
    assert [reading.usage for reading in readings] == [Usage(136, 0, 0, 0, 201, 213, 1), Usage(495, 0, 0, 0, 206, 131, 1)]
    assert [one.barred for one in known(real(GEMINI, "test_google_model_web_search_tool.yaml", ("weather.gov",)))] == [True, False]


def test_a_real_search_of_openrouter() -> None:
    (got,) = known(real(OPENROUTER, "test_openrouter_web_search_annotations.yaml", max_text=500))
    assert (got.searches, len(got.sources), got.barred) == (1, 5, False)
    assert all(source.whole and 0 < len(source.text) <= 500 for source in got.sources)
    assert known(real(OPENROUTER, "test_openrouter_web_search_annotations.yaml", ("github.com/pydantic",)))[0].barred
    (bare,) = real(OPENROUTER, "test_openrouter_web_search_tool_usage.yaml")
    assert known([bare]) == [Browsed(1, (), False)] and bare.usage == Usage(8174, 0, 0, 0, 30, 0, 1)
    assert known(real(OPENROUTER, "test_openrouter_errors_raised.yaml")) == []
