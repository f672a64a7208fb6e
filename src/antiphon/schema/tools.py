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


class TextFormat(Wire):
    """Input of a custom tool without rules."""

    type: Literal["text"] = "text"


class GrammarFormat(Wire):
    """Input of a custom tool that matches a grammar."""

    type: Literal["grammar"] = "grammar"
    syntax: Literal["lark", "regex"]
    definition: str = Field(min_length=1, max_length=65_536)


def _input_format(value: Any) -> str | None:
    kind = kind_of(value)
    return f"~{kind}" if kind in ("text", "grammar") else None


InputFormat = Annotated[
    Annotated[TextFormat, Tag("~text")] | Annotated[GrammarFormat, Tag("~grammar")],
    Discriminator(
        _input_format,
        custom_error_type="format",
        custom_error_message="must be an object of type 'text' or 'grammar'",
    ),
]


class CustomTool(Wire):
    """A tool that takes free text."""

    type: Literal["custom"] = "custom"
    name: str = Field(min_length=1, max_length=64, pattern=r"^[a-zA-Z0-9_-]+$")
    description: str | None = None
    format: InputFormat = Field(default_factory=TextFormat)


def _member(value: Any) -> str | None:
    kind = kind_of(value)
    return f"~{kind}" if kind in ("function", "custom") else None


Member = Annotated[
    Annotated[FunctionTool, Tag("~function")] | Annotated[CustomTool, Tag("~custom")],
    Discriminator(
        _member,
        custom_error_type="member",
        custom_error_message="a namespace holds tools of type 'function' or 'custom'",
    ),
]


class NamespaceTool(Wire):
    """Tools that share a prefix; their calls come back split."""

    type: Literal["namespace"] = "namespace"
    name: str = Field(min_length=1, max_length=64, pattern=r"^[a-zA-Z0-9_-]+$")
    description: str | None = None
    tools: Annotated[list[Member], FirstFault()]


class ToolSearch(Wire):
    """The client can look for more tools. `server` execution is a hosted tool."""

    model_config = ConfigDict(extra="allow")

    type: Literal["tool_search"] = "tool_search"
    execution: Literal["client", "server"] = "server"
    description: str | None = None
    parameters: dict[str, Any] | None = None


class OtherTool(Wire):
    """Any other kind of tool, kept with all its keys."""

    model_config = ConfigDict(extra="allow")

    type: str


def _tool(value: Any) -> str | None:
    kind = kind_of(value)
    if not isinstance(kind, str):
        return None
    known = ("function", "custom", "namespace", "tool_search")
    return f"~{kind}" if kind in known else "~other"


Tool = Annotated[
    Annotated[FunctionTool, Tag("~function")]
    | Annotated[CustomTool, Tag("~custom")]
    | Annotated[NamespaceTool, Tag("~namespace")]
    | Annotated[ToolSearch, Tag("~tool_search")]
    | Annotated[OtherTool, Tag("~other")],
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


class CustomChoice(Wire):
    """Call this custom tool."""

    type: Literal["custom"] = "custom"
    name: str = Field(min_length=1)


def _named(value: Any) -> str | None:
    kind = kind_of(value)
    return f"~{kind}" if kind in ("function", "custom") else None


Named = Annotated[
    Annotated[FunctionChoice, Tag("~function")] | Annotated[CustomChoice, Tag("~custom")],
    Discriminator(
        _named,
        custom_error_type="named",
        custom_error_message="must be an object of type 'function' or 'custom' with a name",
    ),
]


class AllowedTools(Wire):
    """Only these tools may be called."""

    type: Literal["allowed_tools"] = "allowed_tools"
    mode: Literal["auto", "required", "none"] = "auto"
    tools: list[Named] = Field(min_length=1, max_length=128)


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
    return f"~{kind}" if kind in ("function", "custom", "allowed_tools") else "~other"


ToolChoice = Annotated[
    Annotated[Mode, Tag("~mode")]
    | Annotated[FunctionChoice, Tag("~function")]
    | Annotated[CustomChoice, Tag("~custom")]
    | Annotated[AllowedTools, Tag("~allowed_tools")]
    | Annotated[OtherChoice, Tag("~other")],
    Discriminator(
        _choice,
        custom_error_type="tool_choice",
        custom_error_message="must be 'auto', 'none', 'required' or an object with a type",
    ),
]
