"""Items: the elements of input and output, one class for both directions.

Decides which item kinds exist and how a kind is recognised. That one class serves input and
output is what makes every item that we send acceptable as input (contract I2). `id` and
`status` may be missing on the way in; `core` fills them in before anything goes out.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import ConfigDict, Discriminator, Field, Tag, field_validator, model_validator

from antiphon.schema.base import FirstFault, Wire, absent, kind_of
from antiphon.schema.content import ReasoningText, SummaryText, TextOrParts
from antiphon.schema.tools import Tools

Status = Literal["in_progress", "completed", "incomplete"]
Role = Literal["user", "assistant", "system", "developer"]

HOSTED = frozenset(
    {
        "web_search_call",
        "file_search_call",
        "code_interpreter_call",
        "image_generation_call",
        "computer_call",
        "computer_call_output",
        "mcp_list_tools",
        "mcp_call",
        "mcp_approval_request",
        "mcp_approval_response",
        "local_shell_call",
        "local_shell_call_output",
        "shell_call",
        "shell_call_output",
        "apply_patch_call",
        "apply_patch_call_output",
        "program",
        "program_output",
        "configuration_update",
    }
)


class Item(Wire):
    """What all items share. Ids that we did not issue are taken as they are."""

    id: str | None = None
    status: Status | None = None

    @field_validator("id", mode="before")
    @classmethod
    def _no_empty_id(cls, value: Any) -> Any:
        return None if value == "" else value

    @field_validator("status", mode="before")
    @classmethod
    def _foreign_status(cls, value: Any) -> Any:
        known = ("in_progress", "completed", "incomplete")
        return value if not isinstance(value, str) or value in known else "completed"


class Message(Item):
    """A message. `content` is a list of parts in everything that we send."""

    @model_validator(mode="before")
    @classmethod
    def _null_type(cls, value: Any) -> Any:
        if isinstance(value, dict) and value.get("type", ...) is None:
            return {key: inner for key, inner in value.items() if key != "type"}
        return value

    type: Literal["message"] = "message"
    role: Role
    content: TextOrParts
    phase: Literal["commentary", "final_answer"] | None = absent()


class FunctionCall(Item):
    """A call of a client's function; `arguments` is JSON text."""

    type: Literal["function_call"] = "function_call"
    call_id: str = Field(min_length=1)
    name: str = Field(min_length=1)
    namespace: str | None = absent()
    arguments: str


class FunctionCallOutput(Item):
    """What the client's function returned."""

    type: Literal["function_call_output"] = "function_call_output"
    call_id: str = Field(min_length=1)
    output: TextOrParts


class CustomToolCall(Item):
    """A call of a tool that takes free text."""

    type: Literal["custom_tool_call"] = "custom_tool_call"
    call_id: str = Field(min_length=1)
    name: str = Field(min_length=1)
    namespace: str | None = absent()
    input: str


class CustomToolCallOutput(Item):
    """What that tool returned."""

    type: Literal["custom_tool_call_output"] = "custom_tool_call_output"
    call_id: str = Field(min_length=1)
    output: TextOrParts


class ToolSearchCall(Item):
    """The model asks the client for more tools."""

    type: Literal["tool_search_call"] = "tool_search_call"
    call_id: str | None = None
    execution: Literal["client", "server"] = "client"
    arguments: dict[str, Any] = Field(default_factory=dict)


class ToolSearchOutput(Item):
    """The tools that the client found."""

    type: Literal["tool_search_output"] = "tool_search_output"
    call_id: str | None = None
    execution: Literal["client", "server"] = "client"
    tools: Tools = Field(default_factory=list)


class AdditionalTools(Item):
    """Tools that join the request's own."""

    type: Literal["additional_tools"] = "additional_tools"
    role: Role | None = absent()
    tools: Tools = Field(default_factory=list)


class CompactionTrigger(Wire):
    """Compact now."""

    type: Literal["compaction_trigger"] = "compaction_trigger"
    id: str | None = None


class Reasoning(Item):
    """A reasoning trace: readable in `content`, summarised in `summary`, sealed, or several."""

    type: Literal["reasoning"] = "reasoning"
    summary: list[SummaryText] = Field(default_factory=list)
    content: list[ReasoningText] | None = absent()
    encrypted_content: str | None = absent()

    @field_validator("summary", mode="before")
    @classmethod
    def _null_summary(cls, value: Any) -> Any:
        return [] if value is None else value


class ItemReference(Wire):
    """Stands for an item that the caller owns."""

    type: Literal["item_reference"] | None = "item_reference"
    id: str = Field(min_length=1)


class Compaction(Wire):
    """A summary that stands for everything before it."""

    type: Literal["compaction"] = "compaction"
    id: str | None = None
    encrypted_content: str


class ForeignItem(Item):
    """An item of a tool that is executed elsewhere, kept with all its keys."""

    model_config = ConfigDict(extra="allow")

    type: str


_KINDS = frozenset(
    {
        "message",
        "function_call",
        "function_call_output",
        "custom_tool_call",
        "custom_tool_call_output",
        "tool_search_call",
        "tool_search_output",
        "additional_tools",
        "reasoning",
        "item_reference",
        "compaction",
        "compaction_trigger",
    }
)


def _item(value: Any) -> str | None:
    kind = kind_of(value)
    if kind is None and isinstance(value, dict):
        kind = "message" if "role" in value else "item_reference" if "id" in value else None
    if not isinstance(kind, str):
        return None
    if kind in HOSTED:
        return "~foreign"
    return f"~{kind}" if kind in _KINDS else None


InputItem = Annotated[
    Annotated[Message, Tag("~message")]
    | Annotated[FunctionCall, Tag("~function_call")]
    | Annotated[FunctionCallOutput, Tag("~function_call_output")]
    | Annotated[CustomToolCall, Tag("~custom_tool_call")]
    | Annotated[CustomToolCallOutput, Tag("~custom_tool_call_output")]
    | Annotated[ToolSearchCall, Tag("~tool_search_call")]
    | Annotated[ToolSearchOutput, Tag("~tool_search_output")]
    | Annotated[AdditionalTools, Tag("~additional_tools")]
    | Annotated[CompactionTrigger, Tag("~compaction_trigger")]
    | Annotated[Reasoning, Tag("~reasoning")]
    | Annotated[ItemReference, Tag("~item_reference")]
    | Annotated[Compaction, Tag("~compaction")]
    | Annotated[ForeignItem, Tag("~foreign")],
    Discriminator(_item, custom_error_type="unknown_item", custom_error_message="unknown item"),
]
# Every item costs time that other streams wait for.
MAX_ITEMS = 16_384
InputItems = Annotated[list[InputItem], FirstFault(), Field(max_length=MAX_ITEMS)]

StoredItem = (
    Message
    | FunctionCall
    | FunctionCallOutput
    | CustomToolCall
    | CustomToolCallOutput
    | ToolSearchCall
    | ToolSearchOutput
    | AdditionalTools
    | Reasoning
    | Compaction
    | ForeignItem
)
OutputItem = Message | FunctionCall | CustomToolCall | ToolSearchCall | Reasoning
