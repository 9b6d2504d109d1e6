"""Why answers were reused, or not: a sweep's journal read again, question by question. Pure; it decides nothing."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

from deep20ray.actions import Ask
from deep20ray.reuse import answer_key, folded
from deep20ray_cluster.journal import Event
from deep20ray_cluster.owner import place_of
from deep20ray_cluster.plan import Plan, PlannedTrial, terms_of
from deep20ray_cluster.reuse import Book, Place, Source, record_of

_Turn = tuple[str, str, int]
"""Run, trial, turn."""


@dataclass
class _Class:
    """All turns that asked one question of one subject, whatever the policy lets them share."""

    key: str
    subject: str
    question: str
    answers: Counter[str] = field(default_factory=Counter)
    hits: dict[Source, Counter[str]] = field(default_factory=lambda: defaultdict(Counter))
    fresh: list[dict[str, Any]] = field(default_factory=list)
    disputed: bool = False


def explain(plan: Plan, events: Iterable[Event]) -> dict[str, Any]:
    """What ``deep20ray reuse explain`` shows, as JSON: terms of every key, the archive, and every class of equal questions."""
    journal = list(events)
    reader = _Reader(plan, journal)
    for event in journal:
        reader.read(event)
    classes = [_shown(each, reader.near(each)) for each in reader.classes.values()]
    return {
        "policy": plan.sweep.sweep.reuse.value,
        "terms": terms_of(plan).parts,
        "archive": None if plan.archive is None else plan.archive.entry,
        "asked": sum(each["asked"] for each in classes),
        "reused": sum(each["reused"] for each in classes),
        "degenerate": reader.degenerate,
        "disputed_classes": sum(each["disputed"] for each in classes),
        "classes": classes,
    }


class _Reader:
    """Goes through a journal in its order and keeps what each moment knew."""

    def __init__(self, plan: Plan, journal: list[Event]) -> None:
        self._policy, self._terms = plan.sweep.sweep.reuse, terms_of(plan)
        trials: dict[tuple[str, str], PlannedTrial] = {trial.key: trial for trial in plan.trials()}
        self._asks: dict[_Turn, tuple[PlannedTrial, Ask]] = {
            _turn(event): (trials[event.run, event.trial], Ask(event.body["question"])) for event in journal if _asked(event)
        }
        self._book = Book()
        if plan.archive is not None:
            for key, record in plan.archive.answers:
                self._book.add(Place(key, (), ("", "")), record)
        self._open: dict[_Turn, Place] = {}
        self._why: dict[_Turn, str] = {}
        self._alike: dict[tuple[str, str], list[_Class]] = defaultdict(list)
        self.classes: dict[str, _Class] = {}
        self.degenerate = 0

    def read(self, event: Event) -> None:
        """The next event."""
        turn = _turn(event)
        if turn not in self._asks:
            return
        trial, ask = self._asks[turn]
        place = place_of(self._policy, self._terms, trial, ask)
        if event.kind == "started" and event.call not in ("guesser", "validator") and turn not in self._why:
            self._why[turn] = self._reason(place, trial, ask)
            if place is not None:
                self._open[turn] = place
        elif _asked(event):
            self._open.pop(turn, None)
            self._close(event, place, trial, ask)

    def _reason(self, place: Place | None, trial: PlannedTrial, ask: Ask) -> str:
        """Why a question is being answered afresh, as of now."""
        if place is None:
            return "the sweep reuses nothing"
        if self._book.disputed(place):
            return "earlier answers disagree"
        if any(other.shared == place.shared for other in self._open.values()):
            return "an equal question was in flight, and failed or was cut off"
        if self._book.find(place) is not None:
            return "an answer came while it was being asked"
        known = self.classes.get(answer_key(trial.subject.trusted.digest, ask.question, self._terms))
        return "first of its kind" if known is None else f"no earlier answer within reach of policy {self._policy}"

    def _close(self, event: Event, place: Place | None, trial: PlannedTrial, ask: Ask) -> None:
        if ask.degenerate:
            self.degenerate += 1
            return
        key = answer_key(trial.subject.trusted.digest, ask.question, self._terms)
        if key not in self.classes:
            self.classes[key] = _Class(key, trial.subject.id, folded(ask.question))
            self._alike[trial.subject.id, _bare(ask.question)].append(self.classes[key])
        each = self.classes[key]
        each.answers[event.body["token"]] += 1
        record = record_of(event)
        if record is None:
            source = event.body["reused"]
            each.hits[Source(source["run"], source["trial"], source["turn"], source["at"])][source["policy"]] += 1
            return
        if place is not None:
            self._book.add(place, record)
            each.disputed |= self._book.disputed(place)
        run, trial_, turn = _turn(event)
        why = self._why.get((run, trial_, turn), "first of its kind")
        each.fresh.append({"run": run, "trial": trial_, "turn": turn, "token": event.body["token"], "why": why})

    def near(self, of: _Class) -> list[str]:
        """Questions about the same subject that differ in case or punctuation alone, and so are others."""
        return sorted(each.question for each in self._alike[of.subject, _bare(of.question)] if each is not of)


def lines(found: dict[str, Any]) -> Iterator[str]:
    """The same for people."""
    yield f"policy {found['policy']}: {found['asked']} questions of {len(found['classes'])} kinds, {found['reused']} answers reused"
    yield f"{found['disputed_classes']} kinds disputed; {found['degenerate']} degenerate questions besides, which are never reused"
    yield "every key also holds:"
    yield from _parts(found["terms"], "  ")
    for run in found["archive"]["runs"] if found["archive"] else ():
        why = (
            f"no use: other {', '.join(run['differs'])}"
            if run["differs"]
            else f"{run['answers']} answers up to {found['archive']['cutoff']}"
        )
        yield f"archive {run['run_id']}: {why}"
    for each in found["classes"]:
        answers = ", ".join(f"{token} {count}" for token, count in each["answers"].items())
        yield f"{each['key'][:16]} {each['subject']} {each['question']!r}: asked {each['asked']}, reused {each['reused']}; {answers}"
        if each["disputed"]:
            yield "  disputed: no more answers are reused"
        for source in each["sources"]:
            policies = ", ".join(f"{policy} {count}" for policy, count in source["hits"].items())
            yield f"  from {source['run']} trial {source['trial'][:12]} turn {source['turn']}: {policies}"
        for fresh in each["fresh"]:
            yield f"  fresh in {fresh['run']} trial {fresh['trial'][:12]} turn {fresh['turn']}: {fresh['token']}, {fresh['why']}"
        for question in each["near"]:
            yield f"  another question, for its letters or marks: {question!r}"


def _parts(parts: dict[str, Any], indent: str) -> Iterator[str]:
    for name, value in parts.items():
        if isinstance(value, dict):
            yield f"{indent}{name}:"
            yield from _parts(value, indent + "  ")
        else:
            yield f"{indent}{name}: {' '.join(value) if isinstance(value, list) else value}"


def _shown(each: _Class, near: list[str]) -> dict[str, Any]:
    sources = [
        {"run": source.run, "trial": source.trial, "turn": source.turn, "at": source.at, "hits": dict(hits)}
        for source, hits in each.hits.items()
    ]
    return {
        "key": each.key,
        "subject": each.subject,
        "question": each.question,
        "asked": sum(each.answers.values()),
        "reused": sum(sum(hits.values()) for hits in each.hits.values()),
        "answers": dict(each.answers),
        "disputed": each.disputed,
        "sources": sources,
        "fresh": each.fresh,
        "near": near,
    }


def _asked(event: Event) -> bool:
    return event.kind == "closed" and event.body["kind"] == "ask"


def _turn(event: Event) -> _Turn:
    return event.run, event.trial, event.turn


def _bare(question: str) -> str:
    return "".join(character for character in question.casefold() if character.isalnum())
