"""The vendors' own packages as second writers and second readers of what the dialects write and read. OpenRouter speaks OpenAI's.

They are told the same things as our builders: a rendered conversation, a schema, a route's settings. Nothing of ours builds their body.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Annotated, Any

import anthropic
import openai
from anthropic.types import ContentBlockParam, Message
from anthropic.types.message_create_params import MessageCreateParamsNonStreaming
from google import genai
from google.genai import errors as google_errors
from google.genai import types as google
from openai.types.chat import ChatCompletion
from openai.types.chat.completion_create_params import CompletionCreateParamsNonStreaming
from openai.types.responses import Response
from openai.types.responses.response_create_params import ResponseCreateParamsNonStreaming
from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, ValidationError

from deep20ray_actors.config import Dialect, NativeSearch, RouteConfig
from deep20ray_actors.messages import ChatMessage, ResearchMessage
from deep20ray_actors.render import answer_schema, chat_messages

_STRICT = ConfigDict(extra="forbid")
_CHAT = TypeAdapter(list[CompletionCreateParamsNonStreaming], config=_STRICT)
_RESPONSES = TypeAdapter(list[ResponseCreateParamsNonStreaming], config=_STRICT)
_MESSAGES = TypeAdapter(list[MessageCreateParamsNonStreaming], config=_STRICT)
_BLOCKS = TypeAdapter(list[ContentBlockParam], config=_STRICT)

UNTYPED: Mapping[Dialect, frozenset[str]] = {
    Dialect.OPENAI_CHAT: frozenset(),
    Dialect.OPENAI_RESPONSES: frozenset(),
    # Gone from the package's types since 1.x; the service still takes them, as a recorded exchange shows.
    Dialect.ANTHROPIC: frozenset({"temperature", "top_p"}),
    Dialect.GEMINI: frozenset(),
    # OpenRouter's own, sent through OpenAI's package as its documentation says, by extra_body.
    Dialect.OPENROUTER: frozenset({"provider", "reasoning", "tools"}),
}
"""Members of a body that the package sends but has no type for."""


def check(dialect: Dialect, body: dict[str, Any]) -> None:
    """Holds a body against the package's types for requests, unknown members refused at every level.

    Raises:
        ValidationError: it doesn't fit.
    """
    known = {key: value for key, value in body.items() if key not in UNTYPED[dialect]}
    match dialect:
        case Dialect.OPENAI_CHAT | Dialect.OPENROUTER:
            _forced(_CHAT.validate_python([known]))
        case Dialect.OPENAI_RESPONSES:
            _forced(_RESPONSES.validate_python([known]))
        case Dialect.ANTHROPIC:
            _forced(_MESSAGES.validate_python([known]))
            # As part of a message, a block may also be one of the package's models of a reply, which take anything.
            _forced(_BLOCKS.validate_python([block for turn in body["messages"] for block in turn["content"]]))
        case Dialect.GEMINI:
            _Generate.model_validate(known)


class _Generate(BaseModel):
    """generateContent's body out of the package's own parts; it has no type for the whole."""

    model_config = _STRICT
    system_instruction: Annotated[google.Content, Field(alias="systemInstruction")]
    contents: list[google.Content]
    generation_config: Annotated[google.GenerationConfig, Field(alias="generationConfig")]
    tools: list[google.Tool] | None = None


def _forced(value: object) -> None:
    """Pydantic checks an Iterable's members when they are taken; so takes them all."""
    if isinstance(value, Mapping):
        for inner in value.values():
            _forced(inner)
    elif hasattr(value, "__iter__") and not isinstance(value, str | bytes):
        for inner in value:
            _forced(inner)


@dataclass(frozen=True)
class Ask:
    """What both writers are told."""

    url: str
    """The route's base_url."""
    config: RouteConfig
    message: ChatMessage
    seed: int | None = 7
    key: str = "key-1"

    @property
    def turns(self) -> list[Any]:
        return list(chat_messages(self.message, self.config.prompt))

    @property
    def native(self) -> NativeSearch | None:
        """The provider's own search, for a message that is given it."""
        return self.config.native if isinstance(self.message, ResearchMessage) else None

    @property
    def schema(self) -> tuple[str, dict[str, Any]]:
        name, schema = answer_schema(self.message, self.config.tokens)
        return name, dict(schema)


@cache
def _openai(url: str, key: str) -> openai.OpenAI:
    """A client; each takes a while to make."""
    return openai.OpenAI(api_key=key, base_url=url, max_retries=0)


@cache
def _anthropic(url: str, key: str) -> anthropic.Anthropic:
    return anthropic.Anthropic(api_key=key, base_url=url.removesuffix("/v1"), max_retries=0)


@cache
def _gemini(url: str, key: str) -> genai.Client:
    root, _, version = url.rpartition("/")
    return genai.Client(api_key=key, vertexai=False, http_options=google.HttpOptions(base_url=root, api_version=version))


def _given(**values: Any) -> dict[str, Any]:
    return {key: value for key, value in values.items() if value is not None}


def openai_chat(ask: Ask, **more: Any) -> ChatCompletion:
    """As a user of the package would write it."""
    config, (name, schema) = ask.config, ask.schema
    settings: dict[str, Any] = _given(
        response_format={"type": "json_schema", "json_schema": {"name": name, "strict": True, "schema": schema}},
        seed=ask.seed if config.send_seed else None,
        temperature=config.sampling.temperature,
        top_p=config.sampling.top_p,
        reasoning_effort=config.effort,
    )
    made: ChatCompletion = _openai(ask.url, ask.key).chat.completions.create(
        model=config.model,
        messages=ask.turns,
        **(settings | {config.output_limit_field: config.max_output_tokens} | more),
    )
    return made


def openrouter(ask: Ask) -> ChatCompletion:
    """OpenAI's package with what OpenRouter adds."""
    config = ask.config
    only = {"only": list(config.upstreams)} if config.upstreams else {}
    extra: dict[str, Any] = {"provider": {"allow_fallbacks": False, "require_parameters": True, **only}}
    if config.effort is not None:
        extra["reasoning"] = {"effort": config.effort}
    if ask.native is None:
        return openai_chat(ask, extra_body=extra, reasoning_effort=openai.omit)
    excluded = _given(excluded_domains=list(ask.native.excluded_domains) or None)
    extra["tools"] = [{"type": "openrouter:web_search", "parameters": {"max_uses": ask.native.max_searches, **excluded}}]
    return openai_chat(ask, extra_body=extra, reasoning_effort=openai.omit, response_format=openai.omit)


def openai_responses(ask: Ask) -> Response:
    """As a user of the package would write it."""
    config, (name, schema), (system, *turns) = ask.config, ask.schema, ask.turns
    items: Any = [{"type": "message", **turn} for turn in turns]
    settings: dict[str, Any] = _given(
        temperature=config.sampling.temperature,
        top_p=config.sampling.top_p,
        reasoning=None if config.effort is None else {"effort": config.effort},
    )
    if ask.native is not None:
        settings |= {"tools": [{"type": "web_search"}], "tool_choice": "required", "max_tool_calls": ask.native.max_searches}
        settings["include"] = ["web_search_call.action.sources"]
    made: Response = _openai(ask.url, ask.key).responses.create(
        model=config.model,
        instructions=system["content"],
        input=items,
        max_output_tokens=config.max_output_tokens,
        store=False,
        text={"format": {"type": "json_schema", "name": name, "strict": True, "schema": schema}},
        **settings,
    )
    return made


def anthropic_messages(ask: Ask) -> Message:
    """As a user of the package would write it; one turn a message, which the service joins."""
    config, (_, schema), (system, *turns) = ask.config, ask.schema, ask.turns
    form = {"format": {"type": "json_schema", "schema": schema}} if ask.native is None else {}
    output: Any = {**form, **_given(effort=config.effort)}
    more: dict[str, Any] = {} if config.anthropic.thinking is None else {"thinking": {"type": config.anthropic.thinking}}
    if ask.native is not None:
        version = config.anthropic.search_version
        tool = _given(
            type=version,
            name="web_search",
            max_uses=ask.native.max_searches,
            blocked_domains=list(ask.native.excluded_domains) or None,
            allowed_callers=None if version == "web_search_20250305" else ["direct"],
        )
        more["tools"] = [tool]
    sampling = _given(temperature=config.sampling.temperature, top_p=config.sampling.top_p)
    made: Message = _anthropic(ask.url, ask.key).messages.create(
        model=config.model,
        max_tokens=config.max_output_tokens,
        system=system["content"],
        messages=turns,
        output_config=output or anthropic.omit,
        extra_body=sampling or None,
        **more,
    )
    return made


def gemini(ask: Ask) -> google.GenerateContentResponse:
    """As a user of the package would write it."""
    config, (_, schema), (system, *turns) = ask.config, ask.schema, ask.turns
    speakers = {"user": "user", "assistant": "model"}
    thinking = None
    if config.effort is not None:
        off = config.effort == "none"
        thinking = google.ThinkingConfig(thinking_budget=0) if off else google.ThinkingConfig(thinking_level=config.effort.upper())  # type: ignore[arg-type]
    return _gemini(ask.url, ask.key).models.generate_content(
        model=config.model,
        contents=[google.Content(role=speakers[turn["role"]], parts=[google.Part(text=turn["content"])]) for turn in turns],
        config=google.GenerateContentConfig(
            system_instruction=google.Content(parts=[google.Part(text=system["content"])]),
            response_mime_type="application/json" if ask.native is None else None,
            response_json_schema=schema if ask.native is None else None,
            tools=None if ask.native is None else [google.Tool(google_search=google.GoogleSearch())],
            max_output_tokens=config.max_output_tokens,
            seed=ask.seed if config.send_seed else None,
            temperature=config.sampling.temperature,
            top_p=config.sampling.top_p,
            thinking_config=thinking,
        ),
    )


WRITERS: Mapping[Dialect, Callable[[Ask], Any]] = {
    Dialect.OPENAI_CHAT: openai_chat,
    Dialect.OPENAI_RESPONSES: openai_responses,
    Dialect.ANTHROPIC: anthropic_messages,
    Dialect.GEMINI: gemini,
    Dialect.OPENROUTER: openrouter,
}


@dataclass(frozen=True)
class Told:
    """What a package's object says of a reply."""

    text: str | None
    finish: str | None
    model: str | None
    input: int | None
    """Tokens, cached ones included."""
    output: int | None
    """Tokens, reasoning included."""
    total: int | None
    """As the provider states it, where it does."""
    refusal: str | None = None


_Tokens = tuple[int | None, int | None, int | None]


def _of_chat(made: ChatCompletion) -> Told:
    choice, usage = made.choices[0], made.usage
    refusal = choice.message.refusal
    tokens: _Tokens = (None, None, None) if usage is None else (usage.prompt_tokens, usage.completion_tokens, usage.total_tokens)
    return Told(choice.message.content, choice.finish_reason, made.model, *tokens, refusal)


def _of_responses(made: Response) -> Told:
    parts = [part for item in made.output if item.type == "message" for part in item.content]
    refusal = "".join(part.refusal for part in parts if part.type == "refusal") or None
    details, usage = made.incomplete_details, made.usage
    tokens: _Tokens = (None, None, None) if usage is None else (usage.input_tokens, usage.output_tokens, usage.total_tokens)
    return Told(made.output_text, details.reason if details else made.status, made.model, *tokens, refusal)


def _of_messages(made: Message) -> Told:
    usage = made.usage
    read, written = usage.cache_read_input_tokens or 0, usage.cache_creation_input_tokens or 0
    text = "".join(block.text for block in made.content if block.type == "text")
    return Told(text, made.stop_reason, made.model, usage.input_tokens + read + written, usage.output_tokens, None)


def _of_gemini(made: google.GenerateContentResponse) -> Told:
    finish = made.candidates[0].finish_reason if made.candidates else None
    feedback, usage = made.prompt_feedback, made.usage_metadata
    blocked = feedback.block_reason if feedback else None
    word = (finish or blocked).value if finish or blocked else None  # type: ignore[union-attr]
    if usage is None or usage.prompt_token_count is None:
        return Told(made.text, word, made.model_version, None, None, None)
    inputs = usage.prompt_token_count + (usage.tool_use_prompt_token_count or 0)
    outputs = (usage.candidates_token_count or 0) + (usage.thoughts_token_count or 0)
    return Told(made.text, word, made.model_version, inputs, outputs, usage.total_token_count)


READERS: Mapping[Dialect, Callable[[Any], Told]] = {
    Dialect.OPENAI_CHAT: _of_chat,
    Dialect.OPENAI_RESPONSES: _of_responses,
    Dialect.ANTHROPIC: _of_messages,
    Dialect.GEMINI: _of_gemini,
    Dialect.OPENROUTER: _of_chat,
}
MODELS: Mapping[Dialect, type[BaseModel]] = {
    Dialect.OPENAI_CHAT: ChatCompletion,
    Dialect.OPENAI_RESPONSES: Response,
    Dialect.ANTHROPIC: Message,
    Dialect.GEMINI: google.GenerateContentResponse,
    Dialect.OPENROUTER: ChatCompletion,
}


def status_of(error: Exception) -> int | None:
    """The HTTP status that an exception of a package is about."""
    return error.code if isinstance(error, google_errors.APIError) else getattr(error, "status_code", None)


ERRORS = (openai.APIError, anthropic.APIError, google_errors.APIError)

__all__ = ["ERRORS", "MODELS", "READERS", "UNTYPED", "WRITERS", "Ask", "Told", "ValidationError", "check", "status_of"]
