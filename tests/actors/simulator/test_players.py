"""The simulated players: functions of what each request shows, honest, and as different from each other as they say."""

import json
import statistics
import subprocess
import sys
from typing import Any

import pytest

import deep20ray_cohorts
from deep20ray.actions import Ask, Guess, Violation, ViolationKind, parse
from deep20ray.adjudication import Consult, decide
from deep20ray.answers import Role, Token, Verdict
from deep20ray.editions import EDITION_1_0, EDITION_1_1, Edition
from deep20ray.game import Answer, Ended, Game, GuesserTurn, Ruling
from deep20ray.subjects import Subject
from deep20ray_actors.simulator import players, world


def start(category: str) -> list[dict[str, str]]:
    return [{"role": "system", "content": "rules"}, {"role": "user", "content": f"Category: {category}\n\nVariation: 0123456789ab"}]


def ask_role(role: str, data: dict[str, Any], edition: Edition, seed: str) -> dict[str, Any]:
    messages = [{"role": "system", "content": "rules"}, {"role": "user", "content": json.dumps(data)}]
    said = players.reply(f"sim-{role}", messages, [token.value for token in edition.tokens], seed)
    assert said.text is not None
    return json.loads(said.text)


def adjudicate(subject: dict[str, Any], question: str, edition: Edition, seed: str) -> tuple[Token, bool]:
    """The final token, and whether the Judge was asked."""
    pages = world.search(f"{subject['canonical_name']} {question}")
    results = [{"number": n, "url": page.url, "title": page.title, "text": page.text} for n, page in enumerate(pages, start=1)]
    oracle = ask_role("oracle", {"question": question, "results": results, "subject": subject}, edition, seed)
    for item in oracle["evidence"]:
        assert item["excerpt"] in results[item["result"] - 1]["text"]
    evidence = [{"number": n, "url": "u", "excerpt": item["excerpt"]} for n, item in enumerate(oracle["evidence"], start=1)]
    known = {"oracle": Token(oracle["answer"])}
    while isinstance(step := decide(**known), Consult):
        data = {"evidence": evidence, "question": question, "subject": subject}
        known[step.role.value] = Token(ask_role(step.role.value, data, edition, seed)["answer"])
    return step.token, "judge" in known


def hidden_in(messages: list[dict[str, str]], name: str) -> bool:
    return any(name.casefold() in message["content"].casefold() for message in messages)


def play(model: str, subject: Subject, edition: Edition, round_: int) -> tuple[Ended, int, int, int]:
    """A whole game: its end, questions, Judge calls, violations. The Guesser's messages never hold the subject before it says it."""
    trusted = subject.trusted
    told = {"canonical_name": trusted.canonical_name, "aliases": list(trusted.aliases), "description": trusted.description}
    messages = start(subject.category)
    game, asks, judged, violations = Game.start(edition, subject.category, "v"), 0, 0, 0
    while True:
        match game.needs:
            case Ended() as ended:
                return ended, asks, judged, violations
            case GuesserTurn() as turn:
                assert not hidden_in(messages, trusted.canonical_name)
                said = players.reply(model, messages, [], f"{subject.id}/{round_}/{turn.turn}")
                action = parse(said.text or "") if said.finish == "stop" else Violation(ViolationKind.OUTPUT_LIMIT)
                action = game.rule(action)
                game = game.after(action)
                if isinstance(action, Violation):
                    violations += 1
                    messages.append({"role": "user", "content": "the reminder"})
            case Answer(ask):
                asks += 1
                token, second = adjudicate(told, ask.question, edition, f"{subject.id}/{round_}/{game.turn}")
                judged += second
                messages += [{"role": "assistant", "content": ask.canonical}, {"role": "user", "content": token.value}]
                game = game.after(token)
            case Ruling(guess):
                ruled = ask_role(
                    "validator", {"guess": {"name": guess.name, "description": guess.description}, "subject": told}, edition, ""
                )
                messages += [{"role": "assistant", "content": guess.canonical}, {"role": "user", "content": "NO"}]
                game = game.after(Verdict(ruled["verdict"]))


@pytest.mark.parametrize(("cohort", "edition"), [("core-1.0", EDITION_1_0), ("core-1.1", EDITION_1_1)])
def test_the_players_differ_as_they_say(cohort: str, edition: Edition) -> None:
    scores: dict[str, float] = {}
    asks = judged = 0
    slips: dict[str, int] = {}
    for model in players.STYLES:
        games = [play(model, subject, edition, round_) for subject in deep20ray_cohorts.load(cohort).subjects for round_ in range(3)]
        scores[model] = statistics.mean(ended.score for ended, *_ in games)
        asks += sum(game[1] for game in games)
        judged += sum(game[2] for game in games)
        slips[model] = sum(game[3] for game in games)
        assert any(ended.success for ended, *_ in games)
    assert scores["sim-gain"] < scores["sim-average"] < scores["sim-sloppy"]
    assert scores["sim-gain"] < scores["sim-hasty"]
    assert 0.01 < judged / asks < 0.25
    assert slips["sim-sloppy"] > 10
    assert slips["sim-gain"] == slips["sim-average"] == 0


def test_every_subject_of_both_cohorts_is_in_the_world() -> None:
    for name in deep20ray_cohorts.names():
        for subject in deep20ray_cohorts.load(name).subjects:
            known = {each.name for each in world.SUBJECTS_OF[subject.category]}
            assert subject.trusted.canonical_name in known


REPEATED = """
import json
from deep20ray_actors.simulator import players, world
from deep20ray_actors.simulator.server import completion

def body(model, content, *history):
    messages = [{"role": "system", "content": ""}, {"role": "user", "content": content}, *history]
    return json.dumps({"model": model, "messages": messages, "seed": 7}).encode()

asked = {"action": "ASK", "description": None, "name": None, "question": "Is the subject a tool?"}
history = [{"role": "assistant", "content": json.dumps(asked)}, {"role": "user", "content": "RATHER_NO"}]
for model in players.STYLES:
    print(completion(body(model, "Category: thing")), completion(body(model, "Category: thing", *history)))
for question in sorted(world.QUESTIONS):
    pages = world.search(f"bike pump {question}")
    results = [{"number": n, "url": page.url, "text": page.text} for n, page in enumerate(pages, start=1)]
    subject = {"canonical_name": "bike pump", "aliases": [], "description": "d"}
    print(completion(body("sim-oracle", json.dumps({"question": question, "results": results, "subject": subject}))))
"""


def test_a_reply_depends_on_the_request_alone_whatever_the_process() -> None:
    outputs = {
        subprocess.run([sys.executable, "-c", REPEATED], env={"PYTHONHASHSEED": seed}, capture_output=True, text=True, check=True).stdout
        for seed in ("1", "2", "3")
    }
    assert len(outputs) == 1
    assert outputs.pop().count("ASK") >= 4


@pytest.mark.parametrize("model", players.STYLES)
def test_a_guesser_in_the_same_view_says_the_same_whatever_the_subject(model: str) -> None:
    """Reminders, other text and the guide change nothing but the turn; only its own actions and tokens speak."""
    messages = start("thing")
    for property_, token in zip(list(world.PROPERTIES_OF["thing"].values())[:4], ("NO", "YES", "UNKNOWN", "RATHER_YES"), strict=True):
        messages += [{"role": "assistant", "content": Ask(property_.question).canonical}, {"role": "user", "content": token}]
    other = [{"role": "system", "content": "the subject is the Moon"}, *messages[1:]]
    for seed in range(10):
        assert players.reply(model, messages, [], seed) == players.reply(model, other, [], seed)


def test_the_sloppy_one_breaks_the_contract_in_every_way_it_knows() -> None:
    kinds: set[str] = set()
    for seed in range(600):
        said = players.reply("sim-sloppy", start("person"), [], seed)
        if said.finish == "length":
            assert said.text is None
            assert said.reasoning
            kinds.add("output_limit")
            continue
        action = parse(said.text or "")
        if isinstance(action, Violation):
            kinds.add(action.kind)
        elif isinstance(action, Ask) and action.degenerate:
            kinds.add("degenerate")
    assert kinds == {"output_limit", ViolationKind.NOT_JSON, ViolationKind.WRONG_ACTION, "degenerate"}


def test_what_is_said_of_a_longer_name_is_not_said_of_a_shorter() -> None:
    question = world.PROPERTIES_OF["thing"]["moves"].question
    assert world.strength(question, ["lock"], ["Clock has moving parts. The clock has moving parts."]) is None
    assert world.strength("Is the subject male?", ["King"], ["Stephen King is male. By most accounts, Stephen King is male."]) is None
    text = "It is old. Stephen King is male."
    assert world.strength("Is the subject male?", ["King", "Stephen King"], ["", text]) == (1.0, 1, "Stephen King is male.")


def test_every_fact_can_be_found_and_read_back() -> None:
    """Search, sentences and reading agree for everything that the world knows of the cohorts' subjects."""
    names = {each.trusted.canonical_name for name in deep20ray_cohorts.names() for each in deep20ray_cohorts.load(name).subjects}
    for subjects in world.SUBJECTS_OF.values():
        for subject in (each for each in subjects if each.name in names):
            for key, value in subject.facts.items():
                question = world.PROPERTIES_OF[subject.category][key].question
                texts = [page.text for page in world.search(f"{subject.name} {question}")]
                found = world.strength(question, [subject.name], texts)
                assert (found[0] if found else None) == value, (subject.name, question)


def test_a_subject_may_be_called_by_an_alias_or_with_an_article() -> None:
    for names in (["the Moon"], ["Earth's satellite", "Moon"]):
        subject = {"canonical_name": names[0], "aliases": names[1:], "description": "in the sky"}
        results = [{"number": 1, "url": "u", "title": "t", "text": "The Moon is round."}]
        asked = {"question": "Is the subject round?", "results": results, "subject": subject}
        oracle = ask_role("oracle", asked, EDITION_1_1, "s")
        assert oracle["answer"] == "YES"
        assert oracle["evidence"] == [{"excerpt": "The Moon is round.", "result": 1}]


def test_the_seed_changes_the_opening() -> None:
    assert len({players.reply("sim-average", start("person"), [], seed).text for seed in range(20)}) > 3


def test_an_unknown_category_or_question_is_met_honestly() -> None:
    said = players.reply("sim-gain", start("volcano"), [], 1)
    assert isinstance(parse(said.text or ""), Guess)
    subject = {"canonical_name": "Moon", "aliases": [], "description": "Earth's satellite"}
    assert adjudicate(subject, "Does it hum when nobody listens?", EDITION_1_1, "s") == (Token.UNKNOWN, False)
    nobody = {"canonical_name": "Quillibrant", "aliases": [], "description": "unheard of"}
    assert adjudicate(nobody, "Is the subject male?", EDITION_1_1, "s") == (Token.UNKNOWN, False)


def test_a_leaning_is_unknown_where_the_edition_cannot_say_it() -> None:
    subject = {"canonical_name": "Albert Schweitzer", "aliases": [], "description": "theologian"}
    question = world.PROPERTIES_OF["person"]["german"].question
    in_1_1 = {adjudicate(subject, question, EDITION_1_1, str(seed))[0] for seed in range(30)}
    in_1_0 = {adjudicate(subject, question, EDITION_1_0, str(seed))[0] for seed in range(30)}
    assert Token.RATHER_YES in in_1_1
    assert in_1_0 <= {Token.UNKNOWN, Token.YES}


@pytest.mark.parametrize(
    ("name", "verdict"),
    [
        ("moon", "YES"),
        ("The Moon", "YES"),
        ("Luna", "YES"),
        ("Sun or Moon", "NO"),
        ("Sun, Moon", "NO"),
        ("Moonlight", "NO"),
        ("Earth", "NO"),
        ("Luna, or Moon", "NO"),
        ("Goodnight, Moon", "YES"),
    ],
)
def test_the_validator_takes_one_identity(name: str, verdict: str) -> None:
    subject = {"canonical_name": "Moon", "aliases": ["Luna", "Goodnight, moon"], "description": "Earth's satellite"}
    data = {"guess": {"name": name, "description": "in the sky"}, "subject": subject}
    assert ask_role(Role.VALIDATOR.value, data, EDITION_1_1, "s")["verdict"] == verdict
