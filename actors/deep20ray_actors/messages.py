"""What each role may be told: one frozen model per role, with just its fields.

Blindness starts here. A message has no field for anything its role must not know; extra keys are refused, and validation errors
never show what was put in. Reviewer and Judge are told the same things by two separate types, so that neither can be sent the other's.
"""

from collections.abc import Iterable
from typing import Annotated, Any, ClassVar, Literal, Self, assert_never

from pydantic import BaseModel, ConfigDict, Field

from deep20ray.actions import Guess
from deep20ray.answers import Role, Token
from deep20ray.canonical import Digest, digest_of
from deep20ray.game import Exchange, Reminder, View
from deep20ray.subjects import TrustedSubject

Text = Annotated[str, Field(min_length=1)]
Number = Annotated[int, Field(ge=1)]


class _Closed(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", strict=True, hide_input_in_errors=True)


class SubjectItem(_Closed):
    """The trusted subject: what adjudicators are told about it, and nothing else."""

    canonical_name: Text
    aliases: tuple[Text, ...]
    description: Text

    @classmethod
    def of(cls, subject: TrustedSubject) -> Self:
        """From the rules' type."""
        return cls(canonical_name=subject.canonical_name, aliases=subject.aliases, description=subject.description)


class ExchangeItem(_Closed):
    """One valid action in canonical form and the token that followed it."""

    kind: Literal["exchange"] = "exchange"
    action: Text
    token: Token


class ReminderItem(_Closed):
    """The fixed format reminder stood here."""

    kind: Literal["reminder"] = "reminder"


class ResultItem(_Closed):
    """One search result, numbered from 1. ``text`` is what the page held, or else what the search tool returned for it, cut; or empty."""

    number: Number
    url: Text
    title: str
    text: str


class EvidenceItem(_Closed):
    """One piece of evidence as Reviewer and Judge see it, and as it is published."""

    number: Number
    url: Text
    excerpt: Text


class GuessItem(_Closed):
    """A structured guess, untrusted."""

    name: Text
    description: Text


HistoryItem = Annotated[ExchangeItem | ReminderItem, Field(discriminator="kind")]


class _Message(_Closed):
    role: ClassVar[Role]
    kind: ClassVar[str]

    @property
    def digest(self) -> Digest:
        """Digest of the canonical JSON of the type and every field."""
        fields: dict[str, Any] = self.model_dump(mode="json")
        return digest_of({"type": self.kind, **fields})


class GuesserMessage(_Message):
    """The Guesser's whole view."""

    role = Role.GUESSER
    kind = "guesser"
    category: Text
    variation: Text
    history: tuple[HistoryItem, ...] = ()

    @classmethod
    def of(cls, view: View) -> Self:
        """From the game's view."""
        return cls(category=view.category, variation=view.variation, history=tuple(_item(entry) for entry in view.history))


class QueriesMessage(_Message):
    """A question and the trusted subject, for search queries to be written; ``target`` says about how many."""

    role = Role.ORACLE
    kind = "queries"
    subject: SubjectItem
    question: Text
    target: Number

    @classmethod
    def of(cls, subject: TrustedSubject, question: str, target: int) -> Self:
        """From the rules' types."""
        return cls(subject=SubjectItem.of(subject), question=question, target=target)


class SearchMessage(_Message):
    """What the Oracle's search tool is asked."""

    role = Role.ORACLE
    kind = "search"
    query: Text

    @classmethod
    def of(cls, subject: TrustedSubject, question: str) -> Self:
        """The program's own query of a question: the subject's canonical name, a space, the question."""
        return cls(query=search_query(subject, question))


class PagesMessage(_Message):
    """The addresses of pages to be fetched for the Oracle, as a search returned them."""

    role = Role.ORACLE
    kind = "pages"
    urls: tuple[Text, ...]


class ResearchMessage(_Message):
    """A question and the trusted subject, for an Oracle that searches with its provider's own tool; ``searches`` is a target."""

    role = Role.ORACLE
    kind = "research"
    subject: SubjectItem
    question: Text
    searches: Number

    @classmethod
    def of(cls, subject: TrustedSubject, question: str, searches: int) -> Self:
        """From the rules' types."""
        return cls(subject=SubjectItem.of(subject), question=question, searches=searches)


class OracleMessage(_Message):
    """A question, the trusted subject and what the search returned."""

    role = Role.ORACLE
    kind = "oracle"
    subject: SubjectItem
    question: Text
    results: tuple[ResultItem, ...]

    @classmethod
    def of(cls, subject: TrustedSubject, question: str, results: Iterable[ResultItem]) -> Self:
        """From the rules' types and a ``Found``."""
        return cls(subject=SubjectItem.of(subject), question=question, results=tuple(results))


class ReviewerMessage(_Message):
    """A question, the trusted subject and numbered evidence. Nothing of the Oracle's answer."""

    role = Role.REVIEWER
    kind = "reviewer"
    subject: SubjectItem
    question: Text
    evidence: tuple[EvidenceItem, ...]

    @classmethod
    def of(cls, subject: TrustedSubject, question: str, evidence: Iterable[EvidenceItem]) -> Self:
        """From the rules' types and evidence as sent."""
        return cls(subject=SubjectItem.of(subject), question=question, evidence=tuple(evidence))


class JudgeMessage(_Message):
    """The same three things as the Reviewer's. Nothing says that anyone differed."""

    role = Role.JUDGE
    kind = "judge"
    subject: SubjectItem
    question: Text
    evidence: tuple[EvidenceItem, ...]

    @classmethod
    def of(cls, subject: TrustedSubject, question: str, evidence: Iterable[EvidenceItem]) -> Self:
        """From the rules' types and evidence as sent."""
        return cls(subject=SubjectItem.of(subject), question=question, evidence=tuple(evidence))


class ValidatorMessage(_Message):
    """A guess and the trusted subject. No history."""

    role = Role.VALIDATOR
    kind = "validator"
    subject: SubjectItem
    guess: GuessItem

    @classmethod
    def of(cls, subject: TrustedSubject, guess: Guess) -> Self:
        """From the rules' types."""
        return cls(subject=SubjectItem.of(subject), guess=GuessItem(name=guess.name, description=guess.description))


ChatMessage = GuesserMessage | QueriesMessage | ResearchMessage | OracleMessage | ReviewerMessage | JudgeMessage | ValidatorMessage
ToolMessage = SearchMessage | PagesMessage
"""What is asked of a search back-end or of the web, not of a model."""
Message = ChatMessage | ToolMessage


def search_query(subject: TrustedSubject, question: str) -> str:
    """What is searched for a question. A pure function of what the Oracle may see."""
    return f"{subject.canonical_name} {question}"


def _item(entry: Exchange | Reminder) -> ExchangeItem | ReminderItem:
    match entry:
        case Exchange():
            return ExchangeItem(action=entry.action, token=entry.token)
        case Reminder():
            return ReminderItem()
        case _:
            assert_never(entry)
