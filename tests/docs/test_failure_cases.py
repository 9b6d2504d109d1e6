"""Failures that people really met: every one that lies in this project's hands has a test that carries its number."""

import pytest

from tests.docs.marks import marked

CASES = {
    1: "two JSON objects in a row",
    2: "an end-of-text marker after the object",
    3: "extra keys within or around the action",
    4: "an action in lower case",
    5: "an empty question",
    6: "questions that ask nothing",
    7: "reasoning used up the output limit",
    8: "an error inside a 200 without choices",
    9: "a failed response, an empty list of choices",
    10: "fenced JSON, and fences inside a reason",
    12: "aliases shared by subjects, words deleted inside words",
    13: "answers found as parts of words",
    14: "a question that names the subject wins",
    15: "subtypes and nicknames as guesses",
    16: "names cut to ASCII, free text shown to the player, an unseeded choice",
    17: "a question that orders its answerer about",
    18: "letter case or delay as a covert channel",
    19: "an adjudicator asked without the subject",
    20: "misspelt subjects, missing alternates, less specific guesses",
    22: "someone's crash or an empty text scores for others",
    23: "over-long private text, a filter, questions without one answer",
    24: "two answerers differ",
    26: "throttling silently shrinks the sample",
}
"""The numbers are those of the collection; 11 and 21 are not in use."""
ELSEWHERE = {25: "a killed run: the journal's and resumption's own tests, which know no such numbers"}


@pytest.mark.parametrize("number", CASES)
def test_every_failure_has_a_test_of_its_number(number: int) -> None:
    assert [each.test for each in marked("failure_case") if number in each.arguments], CASES[number]


def test_no_test_carries_an_unknown_number() -> None:
    assert {number for each in marked("failure_case") for number in each.arguments} <= CASES.keys()
    assert not CASES.keys() & ELSEWHERE.keys()
