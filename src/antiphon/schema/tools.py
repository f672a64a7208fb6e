"""Tools and tool choice, as requested and as echoed.

Decides the shapes only. Whether a kind of tool is served is the policy's business.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import ConfigDict, Discriminator, Field, Tag, model_validator

from antiphon.schema.base import FirstFault, Wire, kind_of


class FunctionTool(Wire):
    """A function of the client. All keys are echoed, null where not given."""

    type: Literal["function"] = "function"
    name: str = Field(min_length=1, max_length=64, pattern=r"^[a-zA-Z0-9_-]+$")
    description: str | None = None
    parameters: dict[str, Any] | None = None
    strict: bool | None = None


class OtherTool(Wire):
    """Any other kind of tool, kept with all its keys."""

    model_config = ConfigDict(extra="allow")

    type: str


def _tool(value: Any) -> str | None:
    kind = kind_of(value)
    if not isinstance(kind, str):
        return None
    return "~function" if kind == "function" else "~other"


Tool = Annotated[
    Annotated[FunctionTool, Tag("~function")] | Annotated[OtherTool, Tag("~other")],
    Discriminator(
        _tool, custom_error_type="tool", custom_error_message="a tool is an object with a type"
    ),
]
Tools = Annotated[list[Tool], FirstFault()]

Mode = Literal["auto", "none", "required"]


class FunctionChoice(Wire):
    """Call this function. The nested form of chat completions is read as well."""

    type: Literal["function"] = "function"
    name: str = Field(min_length=1)

    @model_validator(mode="before")
    @classmethod
    def _chat_form(cls, value: Any) -> Any:
        if isinstance(value, dict) and isinstance(value.get("function"), dict):
            return {"type": "function", **value["function"]}
        return value


class AllowedTools(Wire):
    """Only these tools may be called."""

    type: Literal["allowed_tools"] = "allowed_tools"
    mode: Literal["auto", "required", "none"] = "auto"
    tools: list[FunctionChoice] = Field(min_length=1, max_length=128)


class OtherChoice(Wire):
    """A choice of some other kind of tool."""

    model_config = ConfigDict(extra="allow")

    type: str


def _choice(value: Any) -> str | None:
    if isinstance(value, str):
        return "~mode"
    kind = kind_of(value)
    if not isinstance(kind, str):
        return None
    return f"~{kind}" if kind in ("function", "allowed_tools") else "~other"


ToolChoice = Annotated[
    Annotated[Mode, Tag("~mode")]
    | Annotated[FunctionChoice, Tag("~function")]
    | Annotated[AllowedTools, Tag("~allowed_tools")]
    | Annotated[OtherChoice, Tag("~other")],
    Discriminator(
        _choice,
        custom_error_type="tool_choice",
        custom_error_message="must be 'auto', 'none', 'required' or an object with a type",
    ),
]
