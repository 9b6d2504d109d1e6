"""The simulated players: each reply is a function of one request body. They see what a model would see, and no more.

The Guessers differ in how they choose (information gain, or any useful question), in how often what they believe about a subject is
wrong, and in their manners. Adjudicators read the texts they are given.
"""

import json
import math
import random
import re
import unicodedata
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import pairwise
from typing import Any

from deep20ray.answers import Token, Verdict
from deep20ray_actors.simulator.world import PROPERTIES_OF, QUESTIONS, SUBJECTS_OF, Property, Subject, chance, strength


@dataclass(frozen=True, slots=True)
class Said:
    """A completion: its visible text, or None with what was spent on reasoning, and the finish reason."""

    text: str | None
    finish: str = "stop"
    reasoning: str | None = None


@dataclass(frozen=True, slots=True)
class Style:
    """How a Guesser plays."""

    error: float
    """The share of its beliefs that are wrong."""
    greedy: bool
    sure: float
    """It guesses once its best candidate is this likely."""
    slips: float = 0.0
    """The chance of a reply that breaks the contract."""
    rash: float = 0.0
    """The chance of guessing early anyway, after two questions, and then whatever comes to mind."""


STYLES: Mapping[str, Style] = {
    "sim-gain": Style(error=0.02, greedy=True, sure=0.8),
    "sim-average": Style(error=0.1, greedy=False, sure=0.6),
    "sim-sloppy": Style(error=0.12, greedy=False, sure=0.55, slips=0.12),
    "sim-hasty": Style(error=0.18, greedy=False, sure=0.4, rash=0.6),
}
ADJUDICATORS = ("sim-oracle", "sim-reviewer", "sim-judge", "sim-validator")


def reply(model: str, messages: Sequence[Mapping[str, str]], tokens: Sequence[str], seed: object) -> Said:
    """What a model says to a conversation.

    Args:
        tokens: the answers that the request's schema allows, where it has an answer.
        seed: the request's sampling seed, or None.

    Raises:
        KeyError: no such model.
        ValueError: a conversation that the role can't be played on.
    """
    if model in STYLES:
        return _guess(model, messages, random.Random(f"{model}/{seed}/{len(messages)}"))
    data = json.loads(messages[1]["content"])
    if not isinstance(data, dict):
        raise ValueError("the user message is no JSON object")
    match model:
        case "sim-oracle":
            return _oracle(data, tokens, seed)
        case "sim-reviewer":
            return _read(data, tokens, chance(seed, "reviewer"), strict=True)
        case "sim-judge":
            return _read(data, tokens, 1.0, strict=False)
        case "sim-validator":
            return _validate(data)
    raise KeyError(model)


# ---- the Guesser


def _guess(model: str, messages: Sequence[Mapping[str, str]], rng: random.Random) -> Said:
    style = STYLES[model]
    category = re.search(r"^Category: (\S+)$", messages[1]["content"], re.MULTILINE)
    if category is None or category[1] not in SUBJECTS_OF:
        return _action("GUESS", name="something else", description="I know nothing of this category")
    if rng.random() < style.slips:
        return _slip(rng)
    answers, wrong = _history(messages)
    subjects = [subject for subject in SUBJECTS_OF[category[1]] if subject.name not in wrong]
    if not subjects:
        return _action("GUESS", name="something else", description="nothing that I know of is left")
    weights = _weights(model, style.error, subjects, answers)
    best = max(range(len(subjects)), key=lambda index: (weights[index], rng.random()))
    open_ = [each for each in PROPERTIES_OF[category[1]].values() if each.question not in answers]
    question = _question(model, style, subjects, weights, open_, rng)
    rash = len(answers) >= 2 and rng.random() < style.rash
    if question is not None and weights[best] < style.sure and not rash:
        return _action("ASK", question=question)
    name = rng.choices(subjects, weights)[0].name if rash else subjects[best].name
    return _action("GUESS", name=name, description=f"the {category[1].replace('_', ' ')} known as {name}")


def _history(messages: Sequence[Mapping[str, str]]) -> tuple[dict[str, str], set[str]]:
    """Questions with their tokens, and rejected names, from its own actions and the words that followed them."""
    answers: dict[str, str] = {}
    wrong: set[str] = set()
    for action, told in pairwise(messages):
        if action["role"] != "assistant" or told["role"] != "user" or told["content"] not in list(Token):
            continue
        value = json.loads(action["content"])
        if value["action"] == "ASK":
            answers[value["question"]] = told["content"]
        else:
            wrong.add(value["name"])
    return answers, wrong


@cache
def _belief(model: str, error: float, subject: str, category: str, key: str) -> float:
    """What a model believes about a property: mostly the truth, fixed for each model."""
    facts = next(each for each in SUBJECTS_OF[category] if each.name == subject).facts
    truth = 0.5 if facts[key] is None else facts[key]
    assert truth is not None
    return 1 - truth if chance(model, subject, key) < error else truth


_LIKELIHOOD = {
    Token.YES: (0.03, 0.94),
    Token.RATHER_YES: (0.15, 0.7),
    Token.UNKNOWN: (0.5, 0.5),
    Token.RATHER_NO: (0.7, 0.15),
    Token.NO: (0.94, 0.03),
}
"""How likely a token is where a property fails, and where it holds."""


def _weights(model: str, error: float, subjects: Sequence[Subject], answers: Mapping[str, str]) -> list[float]:
    logs = [0.0] * len(subjects)
    asked = [(each, _LIKELIHOOD[Token(token)]) for question, token in answers.items() for each in QUESTIONS.get(question, ())]
    for index, subject in enumerate(subjects):
        for each, (fails, holds) in asked:
            if PROPERTIES_OF[subject.category].get(each.key) is each:
                belief = _belief(model, error, subject.name, subject.category, each.key)
                logs[index] += math.log(fails + (holds - fails) * belief)
    top = max(logs)
    weights = [math.exp(value - top) for value in logs]
    total = sum(weights)
    return [weight / total for weight in weights]


def _question(
    model: str, style: Style, subjects: Sequence[Subject], weights: Sequence[float], open_: Sequence[Property], rng: random.Random
) -> str | None:
    """A question worth asking, or None: the one that splits best, or any that splits at all."""
    splits = []
    for each in open_:
        share = sum(
            weight * _belief(model, style.error, subject.name, subject.category, each.key)
            for subject, weight in zip(subjects, weights, strict=True)
        )
        splits.append((abs(share - 0.5), each.question))
    if style.greedy:
        close = sorted(splits)[:3]
        useful = [question for distance, question in close if distance < min(0.45, close[0][0] + 0.05)]
    else:
        useful = [question for distance, question in splits if distance < 0.38] or [
            question for distance, question in splits if distance < 0.46
        ]
    return rng.choice(useful) if useful else None


def _action(action: str, *, question: str | None = None, name: str | None = None, description: str | None = None) -> Said:
    return Said(json.dumps({"action": action, "question": question, "name": name, "description": description}))


def _slip(rng: random.Random) -> Said:
    """A reply that breaks the contract, in the ways that real models do; one of them is valid and empty of sense."""
    good = _action("ASK", question="Is the subject male?").text
    assert good is not None
    return rng.choice(
        [
            Said(f"{good}\n{good}"),
            Said(f"```json\n{good}\n```"),
            Said(good[:-1] + ', "note": "first question"}'),
            Said(good.replace("ASK", "ask")),
            Said(good.replace("Is the subject male?", "")),
            Said(good + "<|eos|>"),
            Said("Let me think about this. " + good),
            Said(None, "length", "weighing one question after another"),
            Said(good.replace("Is the subject male?", "placeholder")),
        ]
    )


# ---- adjudicators


def _token(value: float | None, tokens: Sequence[str]) -> str:
    """A strength as a token of the edition; a leaning is UNKNOWN where the edition can't say it."""
    names = {1.0: Token.YES, 0.75: Token.RATHER_YES, 0.25: Token.RATHER_NO, 0.0: Token.NO}
    token = Token.UNKNOWN if value is None else names[value]
    return token.value if token.value in tokens else Token.UNKNOWN.value


def _oracle(data: Mapping[str, Any], tokens: Sequence[str], seed: object) -> Said:
    texts = [result["text"] for result in data["results"]]
    found = strength(data["question"], _names(data["subject"]), texts)
    value = None if found is None else found[0]
    slip = chance(seed, "oracle")
    if value is not None and slip < 0.05:  # it misreads now and then: firmer, or weaker, than the text
        value = {1.0: 0.75, 0.75: 1.0, 0.25: 0.0, 0.0: 0.25}[value]
    evidence = [] if found is None else [{"excerpt": found[2], "result": data["results"][found[1]]["number"]}]
    why = "the text says so" if found else "the text does not say"
    return Said(json.dumps({"answer": _token(value, tokens), "basis": "evidence", "evidence": evidence, "statement": why}))


def _read(data: Mapping[str, Any], tokens: Sequence[str], luck: float, *, strict: bool) -> Said:
    """A Reviewer or Judge reading its evidence; a strict one sometimes takes a leaning, or a firm sentence, for less than it says."""
    found = strength(data["question"], _names(data["subject"]), [item["excerpt"] for item in data["evidence"]])
    value = None if found is None else found[0]
    if strict and value is not None:
        if value in (0.75, 0.25) and luck < 0.3:
            value = None
        elif luck < 0.04:
            value = {1.0: 0.75, 0.0: 0.25}.get(value, value)
    return Said(json.dumps({"answer": _token(value, tokens), "basis": "evidence", "statement": "read from the evidence"}))


def _names(subject: Mapping[str, Any]) -> list[str]:
    """What a page may call the subject: its name, then its aliases, without an article."""
    return [re.sub(r"^(the|a|an) ", "", name, flags=re.IGNORECASE) for name in (subject["canonical_name"], *subject["aliases"])]


def _folded(name: str) -> str:
    return " ".join(re.sub(r"^(the|a|an) ", "", unicodedata.normalize("NFC", name).casefold().strip()).split())


def _validate(data: Mapping[str, Any]) -> Said:
    """One identity is one of the subject's names as a whole; a list of names never is."""
    name, subject = data["guess"]["name"], data["subject"]
    known = {_folded(each) for each in (subject["canonical_name"], *subject["aliases"])}
    verdict = Verdict.YES if _folded(name) in known else Verdict.NO
    return Said(json.dumps({"statement": "compared the names", "verdict": verdict.value}))
