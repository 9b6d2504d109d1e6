"""Adjudicators' replies are read strictly: exact tokens, exact keys, one fence at most."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from deep20ray.answers import Basis, Token, Verdict
from deep20ray_actors.outcomes import Source
from deep20ray_actors.replies import STATEMENT_MAX, Cited, oracle_answer, researched_answer, reviewed_answer, validated_guess
from tests.actors.support import RESULTS

ALL = tuple(Token)
GOOD: dict[str, Any] = {"answer": "RATHER_YES", "basis": "knowledge", "statement": "Because."}


def test_plain_json() -> None:
    answer = reviewed_answer(json.dumps(GOOD), ALL)
    assert answer is not None and (answer.token, answer.basis) == (Token.RATHER_YES, Basis.KNOWLEDGE)


@pytest.mark.parametrize("fence", ["```json\n{}\n```", "```\n{}\n```\n", "  ```JSON\r\n{}\n  ```"])
def test_a_fence_around_everything_is_unwrapped_once(fence: str) -> None:
    assert reviewed_answer(fence.replace("{}", json.dumps(GOOD)), ALL) is not None


def test_a_fence_inside_the_statement_is_text() -> None:
    answer = reviewed_answer(json.dumps(GOOD | {"statement": "See ```json\n{}\n```"}), ALL)
    assert answer is not None and "```" in answer.statement


@pytest.mark.parametrize(
    "text",
    [
        "",
        "YES",
        "The answer is " + json.dumps(GOOD),
        json.dumps(GOOD) + json.dumps(GOOD),
        json.dumps(GOOD) + "<|end|>",
        "```json\n```json\n" + json.dumps(GOOD) + "\n```\n```",
        "Here:\n```json\n" + json.dumps(GOOD) + "\n```",
        json.dumps(GOOD | {"answer": "yes"}),
        json.dumps(GOOD | {"answer": " YES"}),
        json.dumps(GOOD | {"answer": "MAYBE"}),
        json.dumps(GOOD | {"answer": None}),
        json.dumps(GOOD | {"answer": ["YES"]}),
        json.dumps(GOOD | {"basis": "hearsay"}),
        json.dumps(GOOD | {"basis": {}}),
        json.dumps(GOOD | {"statement": 3}),
        json.dumps(GOOD | {"extra": 1}),
        json.dumps({key: GOOD[key] for key in ("answer", "basis")}),
        '{"answer":"YES","answer":"NO","basis":"knowledge","statement":"s"}',
        '{"answer":"YES","basis":"knowledge","statement":"\\ud800"}',
        '{"answer":"YES","basis":"knowledge","statement":NaN}',
        json.dumps([GOOD]),
        "[" * 100_000,
    ],
)
def test_anything_else_is_none(text: str) -> None:
    assert reviewed_answer(text, ALL) is None


def test_a_token_of_another_edition_is_none() -> None:
    assert reviewed_answer(json.dumps(GOOD), (Token.YES, Token.NO, Token.UNKNOWN)) is None


def test_an_over_long_statement_is_cut() -> None:
    answer = reviewed_answer(json.dumps(GOOD | {"statement": "x" * 50_000}), ALL)
    assert answer is not None and len(answer.statement) == STATEMENT_MAX


def test_oracle_evidence_keeps_three_known_numbers() -> None:
    cited = [
        {"excerpt": "a", "result": 1},
        {"excerpt": "z", "result": 9},
        {"excerpt": "b", "result": 2},
        {"excerpt": "c", "result": 1},
        {"excerpt": "d", "result": 1},
    ]
    answer = oracle_answer(json.dumps(GOOD | {"evidence": cited}), ALL, RESULTS)
    assert answer is not None and answer.evidence == (Cited(1, "a"), Cited(2, "b"), Cited(1, "c"))


@pytest.mark.parametrize(
    "evidence",
    [
        None,
        {},
        [1],
        [{"excerpt": "a"}],
        [{"excerpt": 1, "result": 1}],
        [{"excerpt": "a", "result": True}],
        [{"excerpt": "a", "result": "1"}],
    ],
)
def test_oracle_evidence_of_another_shape_is_none(evidence: Any) -> None:
    assert oracle_answer(json.dumps(GOOD | {"evidence": evidence}), ALL, RESULTS) is None


def test_verdicts() -> None:
    ruling = validated_guess('{"statement":"s","verdict":"UNKNOWN"}')
    assert ruling is not None and ruling.verdict is Verdict.UNKNOWN
    assert validated_guess('{"statement":"s","verdict":"RATHER_YES"}') is None
    assert validated_guess('{"statement":"s","verdict":1}') is None


@given(
    st.text(max_size=200)
    | st.recursive(
        st.none() | st.booleans() | st.text(max_size=5),
        lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(["answer", "basis", "statement", "evidence"]), inner),
    ).map(json.dumps)
)
def test_never_raises_and_never_guesses(text: str) -> None:
    for answer in (reviewed_answer(text, ALL), oracle_answer(text, ALL, RESULTS)):
        if answer is not None:
            assert f'"{answer.token.value}"' in text


REDIRECTS = (
    Source("https://vertexaisearch.cloud.google.com/a", "comets.example", "", whole=False),
    Source("https://vertexaisearch.cloud.google.com/b", "moons.example", "", whole=False),
    Source("https://vertexaisearch.cloud.google.com/c", "moons.example", "", whole=False),
    Source("https://elsewhere.example/page", "titles.example", "", whole=False),
)


@pytest.mark.parametrize(
    ("url", "numbers"),
    [
        ("https://vertexaisearch.cloud.google.com/b", [2]),
        ("https://comets.example/halley", [1]),
        ("https://www.comets.example/", [1]),
        ("https://en.comets.example/halley", [1]),
        ("https://notcomets.example/halley", []),
        ("https://titles.example/", []),
        ("https://moons.example/io", []),
        ("https://elsewhere.example/", []),
        ("comets.example", []),
        ("javascript:comets.example", []),
    ],
)
def test_a_page_behind_a_redirect_is_known_by_its_host_where_that_is_one_source_s_alone(url: str, numbers: list[int]) -> None:
    said = {"answer": "YES", "basis": "evidence", "evidence": [{"url": url, "excerpt": "x"}], "statement": ""}
    answer = researched_answer(json.dumps(said), tuple(Token), REDIRECTS)
    assert answer is not None and [item.result for item in answer.evidence] == numbers
