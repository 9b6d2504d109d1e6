"""The closed vocabularies: what may be said, by whom, and on what basis. Tokens match exactly; nothing here trims or folds case."""

from enum import StrEnum


class Token(StrEnum):
    """A factual answer, the only thing about the subject that ever reaches a Guesser."""

    YES = "YES"
    RATHER_YES = "RATHER_YES"
    RATHER_NO = "RATHER_NO"
    NO = "NO"
    UNKNOWN = "UNKNOWN"

    @property
    def directional(self) -> bool:
        """Any token but UNKNOWN."""
        return self is not Token.UNKNOWN


class Verdict(StrEnum):
    """A Validator's ruling on a guess."""

    YES = "YES"
    NO = "NO"
    UNKNOWN = "UNKNOWN"


class Role(StrEnum):
    """The five parties of a trial."""

    GUESSER = "guesser"
    ORACLE = "oracle"
    REVIEWER = "reviewer"
    JUDGE = "judge"
    VALIDATOR = "validator"


class Policy(StrEnum):
    """What Oracle, Reviewer and Judge may base an answer on."""

    EVIDENCE_FIRST = "evidence-first"
    EVIDENCE_OR_KNOWLEDGE = "evidence-or-knowledge"
    BOUNDED_JUDGE = "bounded-judge"


class Basis(StrEnum):
    """What an adjudicator says it based its answer on."""

    EVIDENCE = "evidence"
    KNOWLEDGE = "knowledge"
