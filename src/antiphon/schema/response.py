"""The response resource and what surrounds it: usage, lists, deletion, token counts.

Decides the shape of what goes out (contract O1-O3): nullable fields are null, optional ones
are absent. All 31 fields of Open Responses' ResponseResource are always there.
"""

from __future__ import annotations

from typing import Any, Literal

from pydantic import Field

from antiphon.schema.base import Wire, absent
from antiphon.schema.items import OutputItem, StoredItem
from antiphon.schema.options import ReasoningOptions, Text
from antiphon.schema.tools import Tool, ToolChoice

Status = Literal["queued", "in_progress", "completed", "incomplete", "failed", "cancelled"]


class InputTokensDetails(Wire):
    """How much of the prompt came from the prompt cache, and how much was newly put there."""

    cached_tokens: int = 0
    cache_write_tokens: int = 0


class OutputTokensDetails(Wire):
    """How much of the output was reasoning."""

    reasoning_tokens: int = 0


class Usage(Wire):
    """Token counts of one response."""

    input_tokens: int
    input_tokens_details: InputTokensDetails = Field(default_factory=InputTokensDetails)
    output_tokens: int
    output_tokens_details: OutputTokensDetails = Field(default_factory=OutputTokensDetails)
    total_tokens: int


class IncompleteDetails(Wire):
    """Why a response is incomplete."""

    reason: Literal["max_output_tokens", "content_filter"]


class ResponseError(Wire):
    """Why a response failed."""

    code: str
    message: str


class ConversationObject(Wire):
    """The conversation that a response belongs to."""

    id: str


class Response(Wire):
    """The stored resource, in every state."""

    id: str
    object: Literal["response"] = "response"
    created_at: int
    completed_at: int | None = None
    status: Status
    background: bool = False
    error: ResponseError | None = None
    incomplete_details: IncompleteDetails | None = None
    instructions: str | None = None
    max_output_tokens: int | None = None
    max_tool_calls: int | None = None
    model: str
    output: list[OutputItem] = Field(default_factory=list)
    parallel_tool_calls: bool = True
    previous_response_id: str | None = None
    conversation: ConversationObject | None = absent()
    prompt_cache_key: str | None = None
    reasoning: ReasoningOptions = Field(default_factory=ReasoningOptions)
    safety_identifier: str | None = None
    service_tier: str = "default"
    store: bool = True
    temperature: float = 1.0
    text: Text = Field(default_factory=Text)
    tool_choice: ToolChoice = "auto"
    tools: list[Tool] = Field(default_factory=list)
    top_logprobs: int = 0
    top_p: float = 1.0
    presence_penalty: float = 0.0
    frequency_penalty: float = 0.0
    truncation: Literal["auto", "disabled"] = "disabled"
    usage: Usage | None = None
    user: str | None = absent()
    metadata: dict[str, str] = Field(default_factory=dict)


class ItemPage(Wire):
    """One page of items."""

    object: Literal["list"] = "list"
    data: list[StoredItem]
    first_id: str | None
    last_id: str | None
    has_more: bool


class DeletedResponse(Wire):
    """The answer to DELETE."""

    id: str
    object: Literal["response"] = "response"
    deleted: Literal[True] = True


class InputTokens(Wire):
    """The answer of `input_tokens`."""

    object: Literal["response.input_tokens"] = "response.input_tokens"
    input_tokens: int


class Model(Wire):
    """One model of `/v1/models`. `context_window` is in tokens."""

    id: str
    object: Literal["model"] = "model"
    created: int
    owned_by: str
    context_window: int
    aliases: list[str] = Field(default_factory=list)
    capabilities: dict[str, bool] = Field(default_factory=dict)


class ModelList(Wire):
    """The answer of `/v1/models`."""

    object: Literal["list"] = "list"
    data: list[Model]


class Health(Wire):
    """The answer of `/health` and `/ready`."""

    status: Literal["ok", "ready", "loading"]
    version: str = absent()


JsonObject = dict[str, Any]
