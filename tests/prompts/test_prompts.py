"""The prompt texts: pinned, complete, and silent about what a role must not know."""

import dataclasses
import json
import re
from importlib import resources
from pathlib import Path

import pytest

import deep20ray_cohorts
import deep20ray_prompts
from deep20ray.actions import DESCRIPTION_MAX, NAME_MAX, QUESTION_MAX
from deep20ray.answers import Role, Token, Verdict
from deep20ray.editions import EDITIONS
from deep20ray_prompts import IndexEntry, Prompt, PromptError, compose, index, load

VECTOR = Path(__file__).parents[1] / "vectors" / "prompts.json"
ADJUDICATORS = (Role.ORACLE, Role.REVIEWER, Role.JUDGE)
GUESSERS = [("guesser", edition, None) for edition in EDITIONS]
VALIDATORS = [("validator", edition, None) for edition in EDITIONS]
ANSWERERS = [(role.value, e.id, policy.value) for e in EDITIONS.values() for policy in e.policies for role in ADJUDICATORS]
EVERY = [*GUESSERS, *VALIDATORS, *ANSWERERS]
ORACLES = [key for key in ANSWERERS if key[0] == "oracle"]


def words(prompt: Prompt) -> str:
    return "\n".join(text for text in (prompt.system, prompt.guide, prompt.reminder, prompt.queries) if text)


def all_texts() -> list[Prompt]:
    """Every revision there ever was, the newest or not."""
    return [compose(entry) for entry in index()]


# ---- versions


def test_every_role_edition_and_policy_has_a_prompt_and_nothing_else_does() -> None:
    assert {(entry.role, entry.edition, entry.policy) for entry in index() if entry.variant is None} == set(EVERY)
    assert {(entry.role, entry.edition, entry.policy) for entry in index() if entry.variant is not None} == set(ORACLES)
    assert {entry.variant for entry in index()} == {None, "native"}
    for role, edition, policy in EVERY:
        prompt = load(role, edition, policy)
        assert (prompt.role, prompt.edition, prompt.policy) == (role, edition, policy)
        stem = "-".join(part for part in (role, edition, policy) if part)
        assert re.fullmatch(re.escape(stem) + r"-r[1-9]\d*", prompt.revision)


def test_every_pinned_text_is_what_it_was_pinned_to() -> None:
    for entry in index():
        assert compose(entry).digest == entry.sha256, f"{entry.revision}: a text changed without a new revision"


def test_the_index_only_grows() -> None:
    """Add a revision at the end of index.json and of tests/vectors/prompts.json; never edit or remove one."""
    pinned = [tuple(pair) for pair in json.loads(VECTOR.read_text())]
    assert [(entry.revision, entry.sha256) for entry in index()][: len(pinned)] == pinned
    assert len(index()) == len(pinned), "pin the new revision in tests/vectors/prompts.json too"


def test_revisions_are_unique_and_count_up() -> None:
    revisions = [entry.revision for entry in index()]
    assert len(set(revisions)) == len(revisions)
    for key in EVERY:
        mine = [entry.revision for entry in index() if (entry.role, entry.edition, entry.policy, entry.variant) == (*key, None)]
        assert [int(name.rsplit("-r", 1)[1]) for name in mine] == list(range(1, len(mine) + 1))
        assert load(*key).revision == mine[-1]
        assert [load(*key, revision=name).revision for name in mine] == mine


def test_every_text_file_is_used_by_some_revision() -> None:
    files = {path.name.removesuffix(".txt") for path in resources.files(deep20ray_prompts).joinpath("texts").iterdir()}
    used = {name for entry in index() for name in (*entry.parts, entry.guide, entry.reminder, *(entry.queries or ())) if name}
    assert files == used


@pytest.mark.parametrize("which", ["system", "guide", "reminder"])
def test_a_changed_word_is_refused_at_load(which: str, monkeypatch: pytest.MonkeyPatch) -> None:
    entry = next(entry for entry in reversed(index()) if entry.role == "guesser" and entry.guide)
    target = {"system": entry.parts[0], "guide": entry.guide, "reminder": entry.reminder}[which]
    honest = deep20ray_prompts._text
    monkeypatch.setattr(deep20ray_prompts, "_text", lambda name: honest(name) + ("!" if name == target else ""))
    load.cache_clear()
    try:
        with pytest.raises(PromptError, match=rf"{re.escape(entry.revision)}.*new revision"):
            load(entry.role, entry.edition)
    finally:
        load.cache_clear()


def test_the_digest_covers_which_text_stands_where() -> None:
    entry = next(entry for entry in index() if entry.guide)
    moved = dataclasses.replace(entry, guide=entry.reminder, reminder=entry.guide)
    assert compose(moved).digest != compose(entry).digest


@pytest.mark.parametrize(
    ("role", "edition", "policy", "revision"),
    [
        ("oracle", "1.1", None, None),
        ("oracle", "1.0", "bounded-judge", None),
        ("guesser", "1.1", "evidence-first", None),
        ("host", "1.1", None, None),
        ("guesser", "2.0", None, None),
        ("guesser", "1.1", None, "guesser-1.1-r99"),
        ("guesser", "1.1", None, "guesser-1.0-r1"),
    ],
)
def test_what_there_is_not_is_named(role: str, edition: str, policy: str | None, revision: str | None) -> None:
    with pytest.raises(PromptError) as caught:
        load(role, edition, policy, revision)
    assert role in str(caught.value) and edition in str(caught.value) and "\n" not in str(caught.value)


# ---- what no text may say


def test_no_prompt_names_a_subject() -> None:
    subjects = [subject for name in deep20ray_cohorts.names() for subject in deep20ray_cohorts.load(name).subjects]
    names = {name for subject in subjects for name in (subject.trusted.canonical_name, *subject.trusted.aliases)}
    # Every part of a name too, except words that are no name by themselves.
    names |= {part for name in names for part in re.split(r"[\s']+", name) if len(part) > 2 and part.lower() not in {"the", "web"}}
    for prompt in all_texts():
        for name in names:
            assert not re.search(rf"(?<!\w){re.escape(name)}(?!\w)", words(prompt), re.IGNORECASE), f"{prompt.revision} names {name}"


def test_the_judge_is_not_told_of_a_disagreement() -> None:
    for prompt in all_texts():
        if prompt.role == "judge":
            said = words(prompt).replace("ask for different things", "").replace("judge only what they say", "")
            assert not re.search(
                r"disagree|differ|second opinion|oracle|review|judge|earlier|previous|other (answer|token)|\btie", said, re.I
            )


@pytest.mark.parametrize("role", ["oracle", "reviewer", "judge", "validator"])
def test_no_adjudicator_is_told_of_the_others_or_of_the_game_so_far(role: str) -> None:
    for prompt in all_texts():
        if prompt.role == role:
            said = words(prompt).replace("judge only what they say", "")
            assert not re.search(r"\b(oracle|reviewer|judge|validator|guesser|turns?|score|benchmark|history|cost)\b", said, re.I)


def test_no_prompt_announces_the_guess_only_turn() -> None:
    for prompt in all_texts():
        assert not re.search(
            r"guess[- ]only|final guess|last (guess|chance|turn)|one more|after the limit|at the limit|must guess|forced",
            words(prompt),
            re.I,
        )


def test_the_reminder_is_fixed_and_says_nothing_of_what_was_wrong() -> None:
    reminders = {load(*key).reminder for key in GUESSERS}
    assert len(reminders) == 1
    (reminder,) = reminders
    assert reminder and not re.search(r"\d|json error|unexpected|line|column|left|remain", reminder, re.I)


def test_prompts_hold_no_machinery() -> None:
    for prompt in all_texts():
        assert not re.search(r"https?://|\{\{|\}\}|TODO", words(prompt))
        assert words(prompt).isascii()


# ---- what each text must say


@pytest.mark.parametrize(("role", "edition", "policy"), ANSWERERS)
def test_adjudicators_know_their_edition_s_tokens_and_shape(role: str, edition: str, policy: str) -> None:
    prompt = load(role, edition, policy)
    said = {token for token in Token if re.search(rf"^- {token}:", prompt.system, re.M)}
    assert said == set(EDITIONS[edition].tokens)
    mentioned = set(re.findall(r"\b(YES|RATHER_YES|RATHER_NO|NO|UNKNOWN)\b", prompt.system))
    assert mentioned == set(EDITIONS[edition].tokens)
    keys = {"answer", "basis", "statement"} | ({"evidence", "result", "excerpt"} if role == "oracle" else set())
    shape = prompt.system.rsplit("\n\n", 1)[1]
    assert set(re.findall(r'"(\w+)"', shape)) == keys | {"evidence", "knowledge"}
    assert "exactly one JSON object and nothing else" in shape


@pytest.mark.parametrize(("role", "edition", "policy"), ORACLES)
def test_an_oracle_that_searches_itself_has_the_same_words_but_for_where_its_material_comes_from(
    role: str, edition: str, policy: str
) -> None:
    plain, native = load(role, edition, policy), load(role, edition, policy, variant="native")
    assert native.revision == f"oracle-{edition}-{policy}-native-r1" and native.queries is None
    assert plain.system.split("\n\n")[1:-1] == native.system.split("\n\n")[1:-1]
    shape = native.system.rsplit("\n\n", 1)[1]
    assert set(re.findall(r'"(\w+)"', shape)) == {"answer", "basis", "statement", "evidence", "url", "excerpt", "knowledge"}


@pytest.mark.parametrize(("role", "edition", "policy"), ORACLES)
def test_writing_queries_is_a_task_of_its_own_that_treats_text_as_data(role: str, edition: str, policy: str) -> None:
    queries = load(role, edition, policy).queries
    assert queries is not None and "is data" in queries and "never follow" in queries
    assert re.findall(r'^- "(\w+)":', queries, re.M) == ["queries"] and not re.search(r"\b(YES|NO|UNKNOWN)\b", queries)


@pytest.mark.parametrize(("role", "edition", "policy"), ANSWERERS)
def test_adjudicators_keep_one_factual_policy_and_treat_text_as_data(role: str, edition: str, policy: str) -> None:
    system = load(role, edition, policy).system
    for needed in (
        "is data",
        "never follow",
        '"or" inclusively',
        '"And" needs every branch',
        "Can, sometimes, usually, always and mainly",
        '"is made of"',
        '"is part of"',
    ):
        assert needed in system, needed
    assert re.search(r"search that found nothing justifies", system)


def test_shared_passages_are_shared() -> None:
    """Per edition one text of token meanings, and one reading of questions for all: they are the same files."""
    newest: dict[tuple[str, str, str | None], IndexEntry] = {(e.role, e.edition, e.policy): e for e in index() if e.variant is None}
    entries = [newest[key] for key in ANSWERERS]
    for stem in ("data", "scope"):
        assert len({part for entry in entries for part in entry.parts if part.startswith(f"{stem}.")}) == 1
    for edition in EDITIONS:
        mine = {part for entry in entries if entry.edition == edition for part in entry.parts if part.startswith("tokens-")}
        assert len(mine) == 1


def test_policies_differ_where_they_must() -> None:
    only_evidence = "the evidence given to you and nothing else"
    stable = "stable closed knowledge"
    own = "or your own knowledge, whichever"
    for role, edition, policy in ANSWERERS:
        system = load(role, edition, policy).system
        expected = {
            "evidence-or-knowledge": own,
            "evidence-first": stable,
            "bounded-judge": only_evidence if role == "reviewer" else stable,
        }[policy]
        assert [phrase for phrase in (only_evidence, stable, own) if phrase in system] == [expected]


@pytest.mark.parametrize(("role", "edition", "policy"), GUESSERS)
def test_the_guesser_knows_the_contract_and_how_turns_count(role: str, edition: str, policy: None) -> None:
    prompt, rules = load(role, edition, policy), EDITIONS[edition]
    assert set(re.findall(r'^- "(\w+)":', prompt.system, re.M)) == {"action", "question", "name", "description"}
    for limit in (QUESTION_MAX, NAME_MAX, DESCRIPTION_MAX):
        assert f"1 to {limit} characters" in prompt.system
    assert f"up to {rules.question_limit}:" in prompt.system and f"scored {rules.failure_score}" in prompt.system
    for needed in ("wrong guess counts one", "right guess counts nothing", "breaks the format below counts one", "Only a GUESS can win"):
        assert needed in prompt.system
    assert {token for token in Token if re.search(rf"\b{token}\b", prompt.system)} == set(rules.tokens)
    assert (prompt.guide is not None) == rules.category_guide and prompt.reminder


def test_strategy_of_1_1() -> None:
    system = load("guesser", "1.1").system
    for needed in (
        "clues, not certainties",
        "Keep the alternatives possible",
        "through a different property",
        "After a guess was rejected, reconsider",
        "Questions ask for properties; guesses name identities",
    ):
        assert needed in system and needed not in load("guesser", "1.0").system


def test_the_guide_explains_every_label_and_more_than_the_subjects_need() -> None:
    guide = load("guesser", "1.1").guide
    assert guide is not None
    labels = set(re.findall(r"^- (\w+):", guide, re.M))
    used = {subject.category for name in deep20ray_cohorts.names() for subject in deep20ray_cohorts.load(name).subjects}
    assert used < labels and {"place", "organisation", "event", "work"} <= labels


@pytest.mark.failure_case(15, 20)
@pytest.mark.parametrize(("role", "edition", "policy"), VALIDATORS)
def test_the_validator_knows_its_rules(role: str, edition: str, policy: None) -> None:
    system = load(role, edition, policy).system
    assert set(re.findall(r"\b(YES|RATHER_YES|RATHER_NO|NO|UNKNOWN)\b", system)) == set(Verdict)
    for needed in (
        "is data",
        "one identity",
        "less specific than the subject is NO",
        "subtype or design variant",
        "Extra detail",
        "alternatives, a list",
    ):
        assert needed in system
    assert set(re.findall(r'^- "(\w+)":', system, re.M)) == {"statement", "verdict"}
