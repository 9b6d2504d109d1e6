"""A typed message in, the chat messages and the answer schema out. Pure, and the same bytes for equal messages.

Adjudicators get their material as one canonical JSON text, so that a question, a guess or web text stays quoted data.
"""

from collections.abc import Iterable, Mapping
from typing import Any, assert_never

from deep20ray.answers import Basis, Token, Verdict
from deep20ray.canonical import canonical
from deep20ray_actors.config import PromptTexts
from deep20ray_actors.errors import RouteRefused
from deep20ray_actors.messages import (
    ChatMessage,
    ExchangeItem,
    GuesserMessage,
    JudgeMessage,
    OracleMessage,
    QueriesMessage,
    ReminderItem,
    ResearchMessage,
    ReviewerMessage,
    SubjectItem,
    ValidatorMessage,
)

ChatTurn = dict[str, str]
"""{"role": "system" | "user" | "assistant", "content": text}"""


def chat_messages(message: ChatMessage, prompt: PromptTexts) -> list[ChatTurn]:
    """The conversation as sent: the system text, then the message's own turns.

    Raises:
        RouteRefused: a Guesser's history needs a reminder, or queries are to be written, and the prompt has no text for it.
    """
    system = prompt.queries if isinstance(message, QueriesMessage) else prompt.system
    if system is None:
        raise RouteRefused("the Oracle's prompt has no text for writing queries; use a complete prompt")
    return [{"role": "system", "content": system}, *_turns(message, prompt)]


def alternating(turns: Iterable[ChatTurn]) -> list[tuple[str, list[str]]]:
    """Turns with neighbours of one speaker joined, as (speaker, texts): for protocols that want the speakers to take turns.

    The texts stay apart and only grow at the end, so that a longer history still begins with the shorter one.
    """
    joined: list[tuple[str, list[str]]] = []
    for turn in turns:
        if joined and joined[-1][0] == turn["role"]:
            joined[-1][1].append(turn["content"])
        else:
            joined.append((turn["role"], [turn["content"]]))
    return joined


def _turns(message: ChatMessage, prompt: PromptTexts) -> list[ChatTurn]:
    match message:
        case GuesserMessage():
            return _game(message, prompt)
        case QueriesMessage():
            return _material(question=message.question, subject=_subject(message.subject), target=message.target)
        case ResearchMessage():
            return _material(question=message.question, searches=message.searches, subject=_subject(message.subject))
        case OracleMessage():
            results = [{"number": r.number, "text": r.text, "title": r.title, "url": r.url} for r in message.results]
            return _material(question=message.question, results=results, subject=_subject(message.subject))
        case ReviewerMessage() | JudgeMessage():
            evidence = [{"excerpt": e.excerpt, "number": e.number, "url": e.url} for e in message.evidence]
            return _material(evidence=evidence, question=message.question, subject=_subject(message.subject))
        case ValidatorMessage():
            guess = {"description": message.guess.description, "name": message.guess.name}
            return _material(guess=guess, subject=_subject(message.subject))
        case _:
            assert_never(message)


def _game(message: GuesserMessage, prompt: PromptTexts) -> list[ChatTurn]:
    start = [f"Category: {message.category}", *([prompt.guide] if prompt.guide else []), f"Variation: {message.variation}"]
    turns = [{"role": "user", "content": "\n\n".join(start)}]
    for entry in message.history:
        match entry:
            case ExchangeItem():
                turns.append({"role": "assistant", "content": entry.action})
                turns.append({"role": "user", "content": entry.token.value})
            case ReminderItem():
                if prompt.reminder is None:
                    raise RouteRefused("the Guesser's prompt has no format reminder; use a complete prompt")
                turns.append({"role": "user", "content": prompt.reminder})
            case _:
                assert_never(entry)
    return turns


def _subject(subject: SubjectItem) -> dict[str, Any]:
    return {"aliases": list(subject.aliases), "canonical_name": subject.canonical_name, "description": subject.description}


def _material(**parts: Any) -> list[ChatTurn]:
    return [{"role": "user", "content": canonical(parts).decode()}]


def answer_schema(message: ChatMessage, tokens: Iterable[Token]) -> tuple[str, Mapping[str, Any]]:
    """The name and JSON schema of the reply. A Guesser's is the same on every turn."""
    words = [token.value for token in tokens]
    basis = {"enum": [basis.value for basis in Basis], "type": "string"}
    match message:
        case GuesserMessage():
            text = {"type": ["string", "null"]}
            return "action", _object(action={"enum": ["ASK", "GUESS"], "type": "string"}, description=text, name=text, question=text)
        case QueriesMessage():
            return "queries", _object(queries={"items": {"type": "string"}, "type": "array"})
        case OracleMessage() | ResearchMessage():
            where = {"result": {"type": "integer"}} if isinstance(message, OracleMessage) else {"url": {"type": "string"}}
            evidence = {"items": _object(excerpt={"type": "string"}, **where), "type": "array"}
            return "oracle_answer", _object(
                answer={"enum": words, "type": "string"}, basis=basis, evidence=evidence, statement={"type": "string"}
            )
        case ReviewerMessage() | JudgeMessage():
            return "answer", _object(answer={"enum": words, "type": "string"}, basis=basis, statement={"type": "string"})
        case ValidatorMessage():
            return "verdict", _object(
                statement={"type": "string"}, verdict={"enum": [verdict.value for verdict in Verdict], "type": "string"}
            )
        case _:
            assert_never(message)


def _object(**properties: Any) -> dict[str, Any]:
    return {"additionalProperties": False, "properties": properties, "required": list(properties), "type": "object"}
