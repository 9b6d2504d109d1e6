"""Who is asked next and what is final, for every combination of tokens, against the rule written as a table."""

from itertools import product

import pytest

from deep20ray.adjudication import Consult, Final, Path, decide
from deep20ray.answers import Role, Token

MAYBE: list[Token | None] = [None, *Token]


def expected(oracle: Token | None, reviewer: Token | None, judge: Token | None) -> Consult | Final | None:
    """None where the combination can't come about."""
    if oracle is None:
        return Consult(Role.ORACLE) if (reviewer, judge) == (None, None) else None
    if oracle == "UNKNOWN":
        return Final(Token.UNKNOWN, Path.ORACLE_UNKNOWN) if (reviewer, judge) == (None, None) else None
    if reviewer is None:
        return Consult(Role.REVIEWER) if judge is None else None
    if reviewer == oracle:
        return Final(oracle, Path.AGREED) if judge is None else None
    return Consult(Role.JUDGE) if judge is None else Final(judge, Path.JUDGED)


@pytest.mark.parametrize(("oracle", "reviewer", "judge"), list(product(MAYBE, MAYBE, MAYBE)))
def test_every_combination(oracle: Token | None, reviewer: Token | None, judge: Token | None) -> None:
    wanted = expected(oracle, reviewer, judge)
    if wanted is None:
        with pytest.raises(ValueError, match=r"no one answers|not reviewed|no Judge"):
            decide(oracle, reviewer, judge)
    else:
        assert decide(oracle, reviewer, judge) == wanted


@pytest.mark.failure_case(24)
def test_in_particular() -> None:
    """The cases that are easiest to get wrong."""
    assert decide(Token.YES, Token.RATHER_YES) == Consult(Role.JUDGE), "a difference in degree is a difference"
    assert decide(Token.YES, Token.UNKNOWN) == Consult(Role.JUDGE), "so is a Reviewer's UNKNOWN"
    assert decide(Token.YES, Token.NO, Token.UNKNOWN) == Final(Token.UNKNOWN, Path.JUDGED), "the Judge may side with neither"
    assert decide(Token.YES, Token.UNKNOWN, Token.YES) == Final(Token.YES, Path.JUDGED)


def test_every_adjudication_ends_after_at_most_three_calls() -> None:
    for tokens in product(Token, Token, Token):
        known: dict[str, Token] = {}
        for role, token in zip(("oracle", "reviewer", "judge"), tokens, strict=True):
            step = decide(**known)
            if isinstance(step, Final):
                break
            assert step.role == role
            known[role] = token
        assert isinstance(decide(**known), Final)


def test_tokens_match_exactly() -> None:
    for wrong in ("yes", "YES ", "Yes", "RATHER YES", "rather_yes", "MAYBE", "", "UNKNOWN."):
        with pytest.raises(ValueError, match="not a valid Token"):
            Token(wrong)
    assert [token for token in Token if not token.directional] == [Token.UNKNOWN]
