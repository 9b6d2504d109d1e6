"""What docs/providers.md says of the dialects is what the code says, and every word of it is shown by a test."""

import pytest

from deep20ray_actors.config import Dialect
from deep20ray_actors.providers.dialects import NATIVE_SEARCH, SEARCH_CAPPED
from deep20ray_actors.providers.features import HOSTED, SUPPORT, Feature
from tests.docs.marks import ROOT, marked
from tests.docs.providers_table import PAGE, parts, table

SHOWS, HOSTS = marked("shows"), marked("hosted")
SUPPORTED = [(dialect, feature) for dialect in Dialect for feature in Feature if SUPPORT[dialect][feature].there]


@pytest.mark.parametrize(("dialect", "feature"), SUPPORTED)
def test_every_supported_feature_is_shown_by_a_test(dialect: Dialect, feature: Feature) -> None:
    assert [each.test for each in SHOWS if each.arguments[0] is feature and dialect in each.arguments[1:]]


def test_marks_name_what_is_supported_and_what_their_test_is_run_with() -> None:
    for each in SHOWS:
        feature, *dialects = each.arguments
        assert isinstance(feature, Feature) and dialects and (ROOT / each.path).exists(), each
        assert all(SUPPORT[dialect][feature].there for dialect in dialects), each
        assert each.dialects is None or set(dialects) <= each.dialects, each


def test_the_data_is_whole_and_agrees_with_the_dialects() -> None:
    assert set(SUPPORT) == set(Dialect) and all(set(features) == set(Feature) for features in SUPPORT.values())
    assert {dialect for dialect in Dialect if SUPPORT[dialect][Feature.NATIVE_SEARCH].there} == NATIVE_SEARCH
    assert {dialect for dialect in Dialect if SUPPORT[dialect][Feature.SEARCH_CEILING].there} == SEARCH_CAPPED


def test_every_server_of_one_s_own_is_shown_by_a_test() -> None:
    assert {(hosted.server, hosted.dialect) for hosted in HOSTED} == {each.arguments for each in HOSTS}
    for each in HOSTS:
        (hosted,) = [one for one in HOSTED if (one.server, one.dialect) == each.arguments]
        assert hosted.driven == (each.path == "tests/wire/test_real_model.py")


def test_the_page_holds_the_table_that_the_code_makes() -> None:
    assert parts(PAGE.read_text())[1] == table(), "run: python -m tests.docs.providers_table --write"
