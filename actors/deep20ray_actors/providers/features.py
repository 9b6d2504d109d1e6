"""What each dialect supports, as data: preflight and the table in docs/providers.md are made of it, and a test shows every entry.

Pure; no call is decided by it.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

from deep20ray_actors.config import Dialect


class Feature(StrEnum):
    """What can be asked of a provider or told by it, in the order of the table."""

    STRUCTURED_OUTPUT = "strict structured output"
    EFFORT = "reasoning effort"
    SEED = "sampling seed"
    SAMPLING = "temperature and top-p, sent only when set"
    OUTPUT_LIMIT = "output limit"
    UPSTREAM = "who serves is pinned and recorded"
    SERVED_MODEL = "served model"
    FINGERPRINT = "fingerprint"
    REASONING_TEXT = "reasoning text, kept private"
    REFUSAL = "a refusal"
    FILTERED = "a filtered reply"
    TRUNCATED = "a truncated reply"
    EMPTY = "an empty reply"
    REASONING_ONLY = "a limit used up by reasoning, without text"
    TOOLS_OFF = "search and tools off, and found out if used"
    NATIVE_SEARCH = "the provider's own search"
    SEARCH_CEILING = "a ceiling on its searches"
    PAUSED_TURN = "a paused turn is gone on with"
    ERROR_IN_200 = "an error inside a 200"
    BROKEN_REPLY = "malformed bodies and broken connections, tried again"
    RETRY_AFTER = "waits as long as it is asked to"
    REFUSED_ONCE = "refused requests, sent once"
    QUOTA_ONCE = "exhausted quota, never tried again"
    USAGE = "usage in meters that don't overlap"
    CACHED_INPUT = "cached input"
    COST = "cost, as reported"


@dataclass(frozen=True, slots=True)
class Support:
    """Whether a dialect has a feature, and what is to be said about it in a few words."""

    there: bool
    note: str = ""


_CHAT, _RESPONSES, _ANTHROPIC, _GEMINI, _ROUTER = (
    Dialect.OPENAI_CHAT,
    Dialect.OPENAI_RESPONSES,
    Dialect.ANTHROPIC,
    Dialect.GEMINI,
    Dialect.OPENROUTER,
)
_NO_FIELD = "no such field"
_NO_PAUSE = "turns don't pause"
_DIRECT = "serves itself"

_ABSENT: Mapping[tuple[Dialect, Feature], str] = {
    (_RESPONSES, Feature.SEED): _NO_FIELD,
    (_ANTHROPIC, Feature.SEED): _NO_FIELD,
    **{(dialect, Feature.UPSTREAM): _DIRECT for dialect in (_CHAT, _RESPONSES, _ANTHROPIC, _GEMINI)},
    (_RESPONSES, Feature.FINGERPRINT): _NO_FIELD,
    (_ANTHROPIC, Feature.FINGERPRINT): _NO_FIELD,
    (_GEMINI, Feature.FINGERPRINT): _NO_FIELD,
    (_GEMINI, Feature.REFUSAL): "told as filtered",
    (_CHAT, Feature.NATIVE_SEARCH): "only OpenAI's retired search models had one",
    (_CHAT, Feature.SEARCH_CEILING): "no search",
    (_GEMINI, Feature.SEARCH_CEILING): _NO_FIELD,
    **{(dialect, Feature.PAUSED_TURN): _NO_PAUSE for dialect in (_CHAT, _RESPONSES, _GEMINI, _ROUTER)},
    (_CHAT, Feature.COST): "OpenRouter's alone",
    (_RESPONSES, Feature.COST): _NO_FIELD,
    (_ANTHROPIC, Feature.COST): _NO_FIELD,
    (_GEMINI, Feature.COST): _NO_FIELD,
}
_NOTES: Mapping[tuple[Dialect, Feature], str] = {
    (_GEMINI, Feature.EFFORT): "none is a budget of 0",
    (_ROUTER, Feature.FINGERPRINT): "where the upstream has one",
    **{(dialect, Feature.STRUCTURED_OUTPUT): "not with its search" for dialect in (_ANTHROPIC, _GEMINI, _ROUTER)},
}

SUPPORT: Mapping[Dialect, Mapping[Feature, Support]] = {
    dialect: {
        feature: Support(False, _ABSENT[dialect, feature])
        if (dialect, feature) in _ABSENT
        else Support(True, _NOTES.get((dialect, feature), ""))
        for feature in Feature
    }
    for dialect in Dialect
}


class Server(StrEnum):
    """Servers that one can run oneself, with their way of being known here."""

    LLAMA_CPP = "llama.cpp"
    VLLM = "vLLM"
    OLLAMA = "Ollama"


@dataclass(frozen=True, slots=True)
class Hosted:
    """How one's own server is known to work with a dialect, and where it falls short."""

    server: Server
    dialect: Dialect
    driven: bool
    """Whether a test plays with a real one, rather than reading bodies of its shape alone."""
    remark: str


HOSTED: tuple[Hosted, ...] = (
    Hosted(Server.LLAMA_CPP, _CHAT, True, "schemas are kept to by grammar; takes the seed; counts cached input"),
    Hosted(
        Server.LLAMA_CPP,
        _RESPONSES,
        True,
        "schemas are not kept to; a reply cut by its limit is told as complete: use openai-chat",
    ),
    Hosted(Server.LLAMA_CPP, _ANTHROPIC, True, "schemas are not kept to; a cut reply is told: use openai-chat"),
    Hosted(Server.VLLM, _CHAT, False, "replies, reasoning, usage and errors of the documented shape"),
    Hosted(Server.OLLAMA, _CHAT, False, "replies, reasoning, usage and errors of the documented shape"),
)
