"""The most that a call can cost, before it is sent, and what it counts as afterwards. Pure, in integer micro-dollars, rounded up.

A wire try costs at most: the bytes of what is sent, because a token is at least one byte, at the dearest price of input (cached, written
to a cache or neither); all of ``max_output_tokens``; and a call may be tried as often as its account's ``attempts``, each of which a
provider may have billed. The bytes are those of the conversation and of the answer schema as JSON in plain ASCII, which is never shorter
than their text in UTF-8, and ``OVERHEAD`` for what a provider wraps around them.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from math import ceil
from typing import Any

from deep20ray.answers import Token
from deep20ray_actors.config import PromptTexts
from deep20ray_actors.messages import ChatMessage, Message, PagesMessage, SearchMessage
from deep20ray_actors.outcomes import Audit
from deep20ray_actors.render import answer_schema, chat_messages
from deep20ray_cluster.prices import INPUT_RATES, UnitPrices

OVERHEAD = 2048
"""Tokens that a provider may add to a request: its template, and its words around the answer schema."""


@dataclass(frozen=True, slots=True)
class Quote:
    """The most that a call can cost: ``tries`` wire tries of ``each`` micro-dollars."""

    each: int
    tries: int

    @property
    def total(self) -> int:
        """Of all tries."""
        return self.each * self.tries

    @property
    def body(self) -> dict[str, int]:
        """As the journal keeps it with the call's start."""
        return {"try_microusd": self.each, "tries": self.tries}

    @classmethod
    def read(cls, body: Mapping[str, Any]) -> "Quote | None":
        """Out of a call's start in the journal; None where no budget was set then."""
        kept = body.get("budget")
        return None if kept is None else cls(kept["try_microusd"], kept["tries"])


@dataclass(frozen=True, slots=True)
class Terms:
    """What a role's calls are made with."""

    prices: UnitPrices
    prompt: PromptTexts
    tokens: tuple[Token, ...]
    max_output_tokens: int
    attempts: int

    def quote(self, message: ChatMessage) -> Quote:
        """For one message."""
        size = input_bound(message, self.prompt, self.tokens)
        rates = self.prices.rates
        dearest = max(rates[name].dearest(size) for name in INPUT_RATES if name in rates)
        return Quote(ceil(dearest * size + rates["output"].dearest(size) * self.max_output_tokens), self.attempts)


@dataclass(frozen=True, slots=True)
class ToolTerms:
    """What searches of the stand-alone back-end are made with; ``fee`` is US dollars per thousand. Pages cost nothing."""

    fee: Fraction
    attempts: int

    def quote(self, message: SearchMessage | PagesMessage) -> Quote:
        """For one message."""
        return Quote(ceil(self.fee * 1000), self.attempts) if isinstance(message, SearchMessage) else Quote(0, 1)


def input_bound(message: ChatMessage, prompt: PromptTexts, tokens: tuple[Token, ...]) -> int:
    """Tokens that a request for this message can't have more of."""
    _, schema = answer_schema(message, tokens)
    return len(json.dumps(chat_messages(message, prompt))) + len(json.dumps(schema)) + OVERHEAD


def charged(cost: int | None, audit: Audit | None, quote: Quote | None) -> int | None:
    """What a call that was sent counts as.

    A wire try that never connected, or was answered by an error's status, is billed by nobody. Any other that brought no reply, such as one
    that broke off, may have been, and stays at its worst case.

    Args:
        cost: of the reply, where it is known.
        audit: of the call; None if it never came back.
        quote: None for a call that was made without a budget.

    Returns:
        None if that is unknown, for want of a quote.
    """
    if audit is None:
        return None if quote is None else quote.total
    tries = max(0, audit.wire_tries - audit.unbilled - (0 if cost is None else 1 + audit.resumptions))
    if not tries:
        return cost or 0
    return None if quote is None else (cost or 0) + quote.each * tries


def call_name(message: Message) -> str:
    """The kind of call that a message makes, as the journal names it; all searches of a question alike."""
    return "oracle" if message.kind == "research" else message.kind
