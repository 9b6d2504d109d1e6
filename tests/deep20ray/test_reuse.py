"""Which questions are equal: golden keys, what a key depends on, and what it doesn't."""

import hashlib
import json
import unicodedata
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from deep20ray.answers import Policy, Role, Token
from deep20ray.canonical import Digest, canonical
from deep20ray.reuse import ADJUDICATORS, KEY_VERSION, Adjudicator, ReusePolicy, Terms, answer_key, folded

VECTOR = json.loads((Path(__file__).parents[1] / "vectors" / "reuse_keys.json").read_text())
SUBJECT = Digest("5" * 64)


def terms_of(parts: dict[str, object]) -> Terms:
    roles = {Role(role): Adjudicator(**digests) for role, digests in parts["adjudicators"].items()}  # type: ignore[attr-defined]
    tokens = tuple(Token(token) for token in parts["vocabulary"])  # type: ignore[attr-defined]
    return Terms(tokens, Policy(parts["policy"]), roles, parts["search_sha256"], parts["fetch_policy"])  # type: ignore[arg-type]


TERMS = terms_of(VECTOR["cases"][0]["terms"])
CHANGED = {
    "vocabulary": replace(TERMS, vocabulary=TERMS.vocabulary[:-1]),
    "order of the vocabulary": replace(TERMS, vocabulary=tuple(reversed(TERMS.vocabulary))),
    "policy": replace(TERMS, policy=Policy.BOUNDED_JUDGE),
    "search": replace(TERMS, search_sha256="e" * 64),
    "fetch policy": replace(TERMS, fetch_policy="other"),
    **{
        f"{role} {name}": replace(TERMS, adjudicators={**TERMS.adjudicators, role: replace(TERMS.adjudicators[role], **{name: "e" * 64})})
        for role in ADJUDICATORS
        for name in ("config_sha256", "prompt_sha256")
    },
}
questions = st.text(min_size=1, max_size=40)
spaces = st.text(" \t\n\r\u00a0\u2003\u3000", min_size=1, max_size=3)


def test_golden_keys() -> None:
    """If this fails, recorded answers are found under another key: name a new version instead."""
    assert VECTOR["version"] == KEY_VERSION
    assert len(VECTOR["cases"]) >= 6
    for case in VECTOR["cases"]:
        assert answer_key(Digest(case["subject"]), case["question"], terms_of(case["terms"])) == case["key"], case["question"]


def test_golden_keys_of_equal_questions_are_equal_and_no_others() -> None:
    by_key: dict[str, set[str]] = {}
    for case in VECTOR["cases"]:
        by_key.setdefault(case["key"], set()).add(case["same_as"])
    assert all(len(names) == 1 for names in by_key.values())
    assert len(by_key) == len({case["same_as"] for case in VECTOR["cases"]})


@given(questions)
def test_against_the_definition_written_again(question: str) -> None:
    struct = {"version": 1, "subject": SUBJECT, "question": folded(question), **VECTOR["cases"][0]["terms"]}
    if any("\ud800" <= character <= "\udfff" for character in question):
        return
    assert answer_key(SUBJECT, question, TERMS) == hashlib.sha256(canonical(struct)).hexdigest()


@given(st.lists(st.text(st.characters(exclude_categories=("Z", "Cc", "Cs", "Mn")), min_size=1), min_size=1), st.data())
def test_white_space_and_unicode_form_make_no_difference(words: list[str], data: st.DataObject) -> None:
    one = " ".join(words)
    other = data.draw(st.sampled_from(["", " "])) + "".join(word + data.draw(spaces) for word in words)
    assert answer_key(SUBJECT, one, TERMS) == answer_key(SUBJECT, unicodedata.normalize("NFD", other), TERMS)


@given(questions)
def test_folding_folds_once(question: str) -> None:
    assert folded(folded(question)) == folded(question)


@pytest.mark.parametrize("other", ["is it polish?", "Is it Polish", "Is it \uff30olish?", "Is  it P olish?"])
def test_nothing_else_is_folded(other: str) -> None:
    assert answer_key(SUBJECT, "Is it Polish?", TERMS) != answer_key(SUBJECT, other, TERMS)


@pytest.mark.parametrize("name", CHANGED)
def test_every_part_counts(name: str) -> None:
    assert answer_key(SUBJECT, "Is it?", TERMS) != answer_key(SUBJECT, "Is it?", CHANGED[name])


def test_the_subject_counts() -> None:
    assert answer_key(SUBJECT, "Is it?", TERMS) != answer_key(Digest("6" * 64), "Is it?", TERMS)


def test_each_policy_reaches_what_the_ones_before_it_do() -> None:
    order = list(ReusePolicy)
    assert order == ["off", "trial", "run", "sweep", "archive"]
    for one in order:
        assert [source for source in order if one.reaches(source)] == order[1 : order.index(one) + 1]
