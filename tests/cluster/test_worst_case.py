"""The most that a call can cost: never less than what it does cost, whatever it says and however often it was tried."""

import json
from dataclasses import replace
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from deep20ray.answers import Token
from deep20ray_actors.config import PromptTexts
from deep20ray_actors.messages import ExchangeItem, GuesserMessage, PagesMessage, QueriesMessage, ReminderItem, SearchMessage, SubjectItem
from deep20ray_actors.outcomes import Audit, Usage
from deep20ray_actors.render import answer_schema, chat_messages
from deep20ray_cluster.prices import UnitPrices, call_cost
from deep20ray_cluster.worst_case import OVERHEAD, Quote, Terms, ToolTerms, call_name, charged, input_bound

from .fakes import audit

PROMPT = PromptTexts("You ask. “Ünïcode” 象", "a guide", "Keep to the format.", "Write queries.")
TOKENS = (Token.YES, Token.NO)
STEPS = {"base": "3", "above": [{"input_tokens": 5000, "usd": "6"}]}
PRICES = UnitPrices.of({"usd_per_mtok": {"input": STEPS, "output": "15.5", "cache_read": "0.3", "cache_write_1h": "6.1"}})
TERMS = Terms(PRICES, PROMPT, TOKENS, 100, 5)

texts = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=200)
messages = st.builds(
    GuesserMessage,
    category=texts,
    variation=texts,
    history=st.lists(
        st.one_of(st.builds(ExchangeItem, action=texts, token=st.sampled_from(Token)), st.builds(ReminderItem)), max_size=40
    ).map(tuple),
)


@given(messages)
def test_no_request_has_more_bytes_than_its_bound(message: GuesserMessage) -> None:
    sent = {"messages": chat_messages(message, PROMPT), "schema": answer_schema(message, TOKENS)[1]}
    spoken = sum(len(turn["content"].encode()) for turn in chat_messages(message, PROMPT))
    assert spoken <= len(json.dumps(sent, ensure_ascii=False).encode()) <= input_bound(message, PROMPT, TOKENS)


@given(messages, st.data())
def test_no_reply_costs_more_than_its_quote(message: GuesserMessage, data: st.DataObject) -> None:
    left = input_bound(message, PROMPT, TOKENS)
    meters = []
    for _ in range(3):
        meters.append(data.draw(st.integers(0, left)))
        left -= meters[-1]
    visible = data.draw(st.integers(0, 100))
    usage = Usage(meters[0], meters[1], 0, meters[2], visible, 100 - visible)
    cost = call_cost(usage, PRICES, None)
    quote = TERMS.quote(message)
    assert cost is not None and cost <= quote.each and quote.total == 5 * quote.each


def test_a_quote_is_what_it_is() -> None:
    message = GuesserMessage(category="thing", variation="v")
    size = input_bound(message, PROMPT, TOKENS)
    assert OVERHEAD < size < 5000
    # Writing to an hour's cache is the dearest input; everything rounds up.
    assert TERMS.quote(message).each == -(-(Fraction("6.1") * size + 1550) // 1)
    queries = QueriesMessage(subject=SubjectItem(canonical_name="x", aliases=(), description="y"), question="z", target=1)
    assert TERMS.quote(queries).each > 1550


def test_searches_and_pages() -> None:
    terms = ToolTerms(Fraction(5), 4)
    assert terms.quote(SearchMessage(query="x")) == Quote(5000, 4)
    assert terms.quote(PagesMessage(urls=("http://example.org",))).total == 0
    assert ToolTerms(Fraction(0), 4).quote(SearchMessage(query="x")).total == 0


def tried(tries: int, unbilled: int = 0, resumptions: int = 0) -> Audit:
    return replace(audit(), wire_tries=tries, unbilled=unbilled, resumptions=resumptions)


@pytest.mark.parametrize(
    ("cost", "made", "counts"),
    [
        (7, tried(1), 7),
        (7, tried(3), 7 + 2 * 100),
        (7, tried(3, unbilled=2), 7),
        (7, tried(3, resumptions=2), 7),
        (0, tried(1), 0),
        (None, tried(1), 100),
        (None, tried(5), 500),
        (None, tried(5, unbilled=5), 0),
        (None, tried(5, unbilled=3), 200),
        (None, tried(0), 0),
        (None, None, 500),
    ],
)
def test_what_a_call_counts_as(cost: int | None, made: Audit | None, counts: int) -> None:
    assert charged(cost, made, Quote(100, 5)) == counts


def test_a_call_without_a_quote_counts_as_its_cost_or_is_unknown() -> None:
    assert charged(7, tried(1), None) == 7
    assert charged(None, tried(2, unbilled=2), None) == 0
    assert charged(None, tried(1), None) is None and charged(None, None, None) is None


def test_a_quote_survives_the_journal() -> None:
    assert Quote.read({"message_sha256": "x", "budget": Quote(3, 4).body}) == Quote(3, 4)
    assert Quote.read({"message_sha256": "x"}) is None


def test_calls_are_named_as_in_the_journal() -> None:
    assert call_name(SearchMessage(query="x")) == "search"
    assert call_name(GuesserMessage(category="thing", variation="v")) == "guesser"
