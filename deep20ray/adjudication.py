"""Who is asked about a question next, and what is final. Pure: it sees tokens and nothing else.

Oracle UNKNOWN is final without review. Any other token is reviewed; the same token is final; any difference goes to the Judge.
"""

from dataclasses import dataclass
from enum import StrEnum

from deep20ray.answers import Role, Token


class Path(StrEnum):
    """How a final token came about."""

    ORACLE_UNKNOWN = "oracle_unknown"
    AGREED = "agreed"
    JUDGED = "judged"


@dataclass(frozen=True, slots=True)
class Consult:
    """The role that must be asked next."""

    role: Role


@dataclass(frozen=True, slots=True)
class Final:
    """The token that goes to the Guesser, and how it was reached."""

    token: Token
    path: Path


def decide(oracle: Token | None = None, reviewer: Token | None = None, judge: Token | None = None) -> Consult | Final:
    """The next step of an adjudication, given the tokens known so far.

    Raises:
        ValueError: a token of a role that the decision rule would not have asked.
    """
    if oracle is None:
        if reviewer is not None or judge is not None:
            raise ValueError("no one answers before the Oracle")
        return Consult(Role.ORACLE)
    if not oracle.directional:
        if reviewer is not None or judge is not None:
            raise ValueError("an Oracle's UNKNOWN is not reviewed")
        return Final(oracle, Path.ORACLE_UNKNOWN)
    if reviewer is None:
        if judge is not None:
            raise ValueError("no Judge before the Reviewer")
        return Consult(Role.REVIEWER)
    if reviewer is oracle:
        if judge is not None:
            raise ValueError("no Judge where the two agree")
        return Final(oracle, Path.AGREED)
    return Consult(Role.JUDGE) if judge is None else Final(judge, Path.JUDGED)
