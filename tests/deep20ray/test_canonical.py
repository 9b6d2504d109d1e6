"""Canonical JSON is RFC 8785, whichever way it is written."""

import json
from enum import StrEnum
from typing import Any

import pytest
import rfc8785
from hypothesis import given
from hypothesis import strategies as st

from deep20ray.canonical import canonical, digest_of, sha256, text

texts = st.text(st.characters(exclude_categories=["Cs"]))
scalars = st.none() | st.booleans() | st.integers(-(2**53) + 1, 2**53 - 1) | st.floats(allow_nan=False, allow_infinity=False) | texts
values = st.recursive(scalars, lambda inner: st.lists(inner) | st.lists(inner).map(tuple) | st.dictionaries(texts, inner), max_leaves=20)


@given(values)
def test_any_value_is_written_as_the_standard_says(value: Any) -> None:
    assert canonical(value) == rfc8785.dumps(value)
    assert digest_of(value) == sha256(rfc8785.dumps(value))


@given(texts)
def test_a_text_alone_too(value: str) -> None:
    assert text(value).encode() == rfc8785.dumps(value)


class Word(StrEnum):
    YES = "YES"


@pytest.mark.parametrize(
    ("value", "written"),
    [
        ({"b": 1, "a": [True, None, "é\u2028\x7f\x1f/"]}, '{"a":[true,null,"é\u2028\x7f\\u001f/"],"b":1}'),
        ({"x": Word.YES}, '{"x":"YES"}'),
        ({"\U0001f600": 1, "\ufb33": 2}, '{"\U0001f600":1,"\ufb33":2}'),  # UTF-16 order, not that of code points
        ([1.0, 1e21, -0.0, 5e-324], "[1,1e+21,0,5e-324]"),
    ],
)
def test_what_the_two_ways_could_differ_in(value: Any, written: str) -> None:
    assert canonical(value) == written.encode() == rfc8785.dumps(value)


@pytest.mark.parametrize("value", [float("nan"), 2**53, {"a": "\ud800"}, "\ud800", {1: 2}, b"x", {"a": {"b": {3}}}])
def test_what_is_no_json_is_refused(value: object) -> None:
    with pytest.raises(rfc8785.CanonicalizationError):
        canonical(value)


def test_a_text_of_json_is_not_taken_for_the_value() -> None:
    assert canonical(json.dumps({})) == b'"{}"'
