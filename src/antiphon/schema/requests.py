"""Bodies and queries of requests.

Decides which fields exist, their types and ranges (contract section 2). What a field means,
and whether it is served, is `core`'s business. A null is the same as leaving the field out.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import Discriminator, Field, Tag, field_validator, model_validator

from antiphon.schema.base import Wire
from antiphon.schema.items import InputItems
from antiphon.schema.options import ReasoningOptions, Text
from antiphon.schema.tools import ToolChoice, Tools

INCLUDES = (
    "file_search_call.results",
    "web_search_call.results",
    "web_search_call.action.sources",
    "message.input_image.image_url",
    "computer_call_output.output.image_url",
    "code_interpreter_call.outputs",
    "reasoning.encrypted_content",
    "message.output_text.logprobs",
)
MAX_STOP = 1024
MAX_METADATA = 16
MAX_METADATA_KEY = 64
MAX_METADATA_VALUE = 512


def _input(value: Any) -> str | None:
    if isinstance(value, str):
        return "~text"
    return "~items" if isinstance(value, list) else None


Input = Annotated[
    Annotated[str, Tag("~text")] | Annotated[InputItems, Tag("~items")],
    Discriminator(
        _input,
        custom_error_type="input",
        custom_error_message="must be a string or a list of items",
    ),
]


class StreamOptions(Wire):
    """Options that only matter with `stream: true`."""

    include_obfuscation: bool | None = None


class ConversationRef(Wire):
    """`{"id": …}`, the long form of a conversation id."""

    id: str = Field(min_length=1)


def _conversation(value: Any) -> str | None:
    if isinstance(value, str):
        return "~id"
    return "~object" if isinstance(value, dict) else None


Conversation = Annotated[
    Annotated[str, Tag("~id"), Field(min_length=1)] | Annotated[ConversationRef, Tag("~object")],
    Discriminator(
        _conversation,
        custom_error_type="conversation",
        custom_error_message="must be an id or an object with an id",
    ),
]


class Compactor(Wire):
    """One entry of `context_management`."""

    type: Literal["compaction"]
    compact_threshold: int | None = Field(default=None, ge=1, le=100_000_000)


class Body(Wire):
    """A request body: nulls are dropped before the fields are read (C20)."""

    @model_validator(mode="before")
    @classmethod
    def _drop_nulls(cls, value: Any) -> Any:
        if isinstance(value, dict):
            return {key: inner for key, inner in value.items() if inner is not None}
        return value


class InputTokensBody(Body):
    """POST /v1/responses/input_tokens: the fields that decide the prompt."""

    model: str = Field(min_length=1)
    input: Input | None = None
    instructions: str | None = None
    previous_response_id: str | None = Field(default=None, min_length=1)
    conversation: Conversation | None = None
    tools: Tools = Field(default_factory=list)
    tool_choice: ToolChoice = "auto"
    parallel_tool_calls: bool = True
    text: Text = Field(default_factory=Text)
    reasoning: ReasoningOptions = Field(default_factory=ReasoningOptions)
    truncation: Literal["auto", "disabled"] = "disabled"
    chat_template_kwargs: dict[str, Any] = Field(default_factory=dict)


class CreateBody(InputTokensBody):
    """POST /v1/responses."""

    stream: bool = False
    stream_options: StreamOptions = Field(default_factory=StreamOptions)
    background: bool = False
    store: bool = True
    include: list[str] = Field(default_factory=list)
    metadata: dict[str, str] = Field(default_factory=dict)
    context_management: list[Compactor] | None = Field(default=None, max_length=1)
    max_output_tokens: int | None = Field(default=None, ge=1)
    max_tool_calls: int | None = Field(default=None, ge=1)
    temperature: float = Field(default=1.0, ge=0, le=2)
    top_p: float = Field(default=1.0, ge=0, le=1)
    presence_penalty: float = Field(default=0.0, ge=-2, le=2)
    frequency_penalty: float = Field(default=0.0, ge=-2, le=2)
    repetition_penalty: float | None = Field(default=None, gt=0, le=2)
    top_k: int | None = Field(default=None, ge=0, le=2**31 - 1)
    min_p: float | None = Field(default=None, ge=0, le=1)
    seed: int | None = Field(default=None, ge=-(2**63), le=2**64 - 1)
    stop: list[str] = Field(default_factory=list, max_length=4)
    top_logprobs: int = Field(default=0, ge=0, le=20)
    user: str | None = None
    safety_identifier: str | None = Field(default=None, max_length=128)
    prompt_cache_key: str | None = Field(default=None, max_length=512)
    service_tier: Literal["auto", "default", "flex", "scale", "priority", "fast"] | None = None

    @field_validator("stop", mode="before")
    @classmethod
    def _one_stop(cls, value: Any) -> Any:
        return [value] if isinstance(value, str) else value

    @field_validator("stop")
    @classmethod
    def _bounded_stops(cls, value: list[str]) -> list[str]:
        if any(not 1 <= len(stop) <= MAX_STOP for stop in value):
            raise ValueError(f"a stop string has 1 to {MAX_STOP} characters")
        return value

    @field_validator("include")
    @classmethod
    def _known_includes(cls, value: list[str]) -> list[str]:
        if any(name not in INCLUDES for name in value):
            raise ValueError(f"must be among {', '.join(INCLUDES)}")
        return value

    @field_validator("metadata")
    @classmethod
    def _bounded_metadata(cls, value: dict[str, str]) -> dict[str, str]:
        if len(value) > MAX_METADATA:
            raise ValueError(f"at most {MAX_METADATA} pairs, got {len(value)}")
        if any(len(key) > MAX_METADATA_KEY for key in value):
            raise ValueError(f"a key has at most {MAX_METADATA_KEY} characters")
        if any(len(inner) > MAX_METADATA_VALUE for inner in value.values()):
            raise ValueError(f"a value has at most {MAX_METADATA_VALUE} characters")
        return value


class PageQuery(Wire):
    """Query of a list of items."""

    limit: int = Field(default=20, ge=1, le=100)
    order: Literal["asc", "desc"] = "desc"
    after: str | None = None
    before: str | None = None
