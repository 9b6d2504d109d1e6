"""Messages hold just their role's fields, refuse the rest, and never show what they refused."""

import pickle

import pytest
from pydantic import ValidationError

from deep20ray.answers import Role
from deep20ray_actors.messages import GuesserMessage, JudgeMessage, ReviewerMessage, SearchMessage
from tests.actors.support import MESSAGES, SUBJECT

FIELDS = {
    Role.GUESSER: {"category", "variation", "history"},
    Role.ORACLE: {"subject", "question", "results"},
    Role.REVIEWER: {"subject", "question", "evidence"},
    Role.JUDGE: {"subject", "question", "evidence"},
    Role.VALIDATOR: {"subject", "guess"},
}


@pytest.mark.parametrize("role", Role)
def test_fields_are_the_closed_list(role: Role) -> None:
    message = MESSAGES[role]
    assert message.role is role
    assert set(type(message).model_fields) == FIELDS[role]
    with pytest.raises(ValidationError) as caught:
        type(message).model_validate({name: getattr(message, name) for name in FIELDS[role]} | {"statement": "it is secretly a comet"})
    assert "secretly" not in str(caught.value)


@pytest.mark.parametrize("role", Role)
def test_survives_the_trip_to_another_process(role: Role) -> None:
    message = MESSAGES[role]
    copy = pickle.loads(pickle.dumps(message))
    assert copy == message and copy.digest == message.digest


def test_messages_are_frozen() -> None:
    with pytest.raises(ValidationError):
        MESSAGES[Role.REVIEWER].question = "else"  # type: ignore[union-attr]


def test_errors_hide_what_was_put_in() -> None:
    with pytest.raises(ValidationError) as caught:
        GuesserMessage(category=["Halley"], variation="x")  # type: ignore[arg-type]
    assert "Halley" not in str(caught.value)


def test_digest_tells_reviewer_from_judge_and_any_field_from_another() -> None:
    digests = {message.digest for message in MESSAGES.values()}
    digests.add(ReviewerMessage.of(SUBJECT, "Is it alive!", ()).digest)
    assert len(digests) == 6
    assert ReviewerMessage.of(SUBJECT, "q", ()).digest != JudgeMessage.of(SUBJECT, "q", ()).digest
    assert ReviewerMessage.of(SUBJECT, "q", ()).digest == ReviewerMessage.of(SUBJECT, "q", ()).digest


def test_search_query_is_name_and_question() -> None:
    assert SearchMessage.of(SUBJECT, "Is it alive?").query == "Halley's Comet Is it alive?"


def test_a_blank_subject_or_question_is_refused() -> None:
    with pytest.raises(ValidationError):
        ReviewerMessage.of(SUBJECT, "", ())
