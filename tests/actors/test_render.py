"""What a role's model reads, to the byte."""

import json

import pytest

from deep20ray.answers import Role, Token
from deep20ray_actors.config import PromptTexts
from deep20ray_actors.errors import RouteRefused
from deep20ray_actors.render import answer_schema, chat_messages
from tests.actors.support import ASK, MESSAGES

PROMPT = PromptTexts("Play.", "Labels mean this.", "Mind the format.")


def test_guesser_conversation() -> None:
    assert chat_messages(MESSAGES[Role.GUESSER], PROMPT) == [  # type: ignore[arg-type]
        {"role": "system", "content": "Play."},
        {"role": "user", "content": "Category: thing\n\nLabels mean this.\n\nVariation: 0a1b2c"},
        {"role": "assistant", "content": ASK},
        {"role": "user", "content": "RATHER_NO"},
        {"role": "user", "content": "Mind the format."},
    ]


def test_guesser_without_guide() -> None:
    start = chat_messages(MESSAGES[Role.GUESSER], PromptTexts("Play.", None, "Mind."))[1]  # type: ignore[arg-type]
    assert start["content"] == "Category: thing\n\nVariation: 0a1b2c"


def test_a_reminder_needs_a_prompt_that_has_one() -> None:
    with pytest.raises(RouteRefused):
        chat_messages(MESSAGES[Role.GUESSER], PromptTexts("Play."))  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("role", "keys"),
    [
        (Role.ORACLE, ["question", "results", "subject"]),
        (Role.REVIEWER, ["evidence", "question", "subject"]),
        (Role.JUDGE, ["evidence", "question", "subject"]),
        (Role.VALIDATOR, ["guess", "subject"]),
    ],
)
def test_adjudicators_get_one_canonical_json(role: Role, keys: list[str]) -> None:
    turns = chat_messages(MESSAGES[role], PROMPT)  # type: ignore[arg-type]
    assert [turn["role"] for turn in turns] == ["system", "user"]
    material = json.loads(turns[1]["content"])
    assert list(material) == keys
    assert list(material["subject"]) == ["aliases", "canonical_name", "description"]
    assert turns[1]["content"] == json.dumps(material, sort_keys=True, separators=(",", ":"), ensure_ascii=False)


def test_reviewer_and_judge_read_the_same() -> None:
    assert chat_messages(MESSAGES[Role.REVIEWER], PROMPT) == chat_messages(MESSAGES[Role.JUDGE], PROMPT)  # type: ignore[arg-type]


@pytest.mark.parametrize("role", Role)
def test_schemas_are_strict_objects_of_the_editions_tokens(role: Role) -> None:
    tokens = (Token.YES, Token.NO, Token.UNKNOWN)
    name, schema = answer_schema(MESSAGES[role], tokens)  # type: ignore[arg-type]
    assert name == {"guesser": "action", "oracle": "oracle_answer", "validator": "verdict"}.get(role.value, "answer")
    assert schema["additionalProperties"] is False and schema["required"] == list(schema["properties"]) == sorted(schema["properties"])
    if "answer" in schema["properties"]:
        assert schema["properties"]["answer"]["enum"] == ["YES", "NO", "UNKNOWN"]
