"""What a request may demand of this server, policy and model.

Decides which fields that were understood are refused with a 400 that says so, and which are
left out with notice (contract section 0, C5, C15, T2, T3): nothing is dropped silently.
"""

from __future__ import annotations

import re

from antiphon.core.policy import Policy
from antiphon.core.prompt import LOGPROBS
from antiphon.core.toolbox import Toolbox
from antiphon.engine.types import Capabilities
from antiphon.errors import InvalidRequest, NotSupported
from antiphon.schema.requests import CreateBody, InputTokensBody
from antiphon.schema.tools import (
    AllowedTools,
    CustomChoice,
    CustomTool,
    FunctionChoice,
    FunctionTool,
    NamespaceTool,
    OtherChoice,
    OtherTool,
    Tool,
    ToolSearch,
)

_HOSTED = re.compile(
    r"(web_search|web_search_preview|computer_use_preview)(_\d{4}_\d\d_\d\d)?"
    r"|file_search|computer|code_interpreter|image_generation|mcp|programmatic_tool_calling"
)


def check(body: InputTokensBody, able: Capabilities, policy: Policy) -> None:
    """Refuse what is not served.

    Raises:
        NotSupported: understood, but not served here.
        InvalidRequest: demands that contradict each other.
    """
    if body.previous_response_id is not None and body.conversation is not None:
        raise InvalidRequest(
            "previous_response_id and conversation are mutually exclusive.", param="conversation"
        )
    if body.conversation is not None:
        raise _later("Conversations", "conversation")
    if body.truncation == "auto" and not policy.truncation:
        raise NotSupported(
            "truncation 'auto' is not served under the strict policy; send 'disabled'.",
            param="truncation",
        )
    _check_format(body, able)
    _check_tools(body, able, policy)
    if not isinstance(body, CreateBody):
        return
    if body.background:
        raise _later("Background mode", "background")
    if body.context_management is not None:
        raise _later("context_management", "context_management")
    if (body.top_logprobs or LOGPROBS in body.include) and not able.logprobs:
        param = "top_logprobs" if body.top_logprobs else "include"
        raise NotSupported("This model gives no log-probabilities.", param=param)


def left_out(body: InputTokensBody) -> list[str]:
    """The tools that a lenient policy leaves out, for `Antiphon-Ignored` (P1)."""
    return [f"tools[{index}]:{tool.type}" for index, tool in enumerate(body.tools) if _hosted(tool)]


def place(toolbox: Toolbox, tool: int | None) -> str:
    """The field of a schema or grammar: of a tool by its number, or of the output."""
    if tool is None:
        return "text.format.schema"
    raw = toolbox.specs[tool].raw
    return f"{toolbox.places[tool]}.{'format.definition' if raw else 'parameters'}"


def _check_format(body: InputTokensBody, able: Capabilities) -> None:
    if body.text.format.type == "text":
        return
    if not able.constraints:
        raise NotSupported(
            f"This model cannot be held to the text format '{body.text.format.type}'.",
            param="text.format",
        )
    if body.tool_choice not in ("auto", "none") and not isinstance(body.tool_choice, AllowedTools):
        raise InvalidRequest(
            "A forced tool_choice and a text.format contradict each other.", param="tool_choice"
        )


def _check_tools(body: InputTokensBody, able: Capabilities, policy: Policy) -> None:
    for index, tool in enumerate(body.tools):
        served = isinstance(tool, FunctionTool)
        if isinstance(tool, CustomTool | NamespaceTool | ToolSearch) and not _hosted(tool):
            served = policy.custom_tools
        elif _hosted(tool):
            served = policy.hosted_tools
        if not served:
            raise NotSupported(
                f"Tools of type '{tool.type[:64]}' are not supported (tool {index}).",
                param=f"tools[{index}].type",
            )
    if body.tools and not able.tools:
        raise NotSupported("This model cannot call tools.", param="tools")


def _hosted(tool: Tool) -> bool:
    if isinstance(tool, ToolSearch):
        return tool.execution == "server"
    return isinstance(tool, OtherTool) and _HOSTED.fullmatch(tool.type) is not None


def check_choice(body: InputTokensBody, toolbox: Toolbox, able: Capabilities) -> None:
    """Refuse a `tool_choice` that cannot be met with these tools (T3).

    Raises:
        NotSupported: the model cannot be held to it.
        InvalidRequest: there are no tools, or none of that name.
    """
    choice = body.tool_choice
    if choice in ("auto", "none"):
        return
    if isinstance(choice, OtherChoice):
        raise NotSupported(
            f"A tool_choice of type '{choice.type[:64]}' is not supported.", param="tool_choice"
        )
    if not toolbox.specs:
        raise InvalidRequest("tool_choice demands tools, but there are none.", param="tool_choice")
    wanted: list[str] = []
    if isinstance(choice, FunctionChoice | CustomChoice):
        wanted = [choice.name]
    if isinstance(choice, AllowedTools):
        wanted = [tool.name for tool in choice.tools]
        if choice.mode == "required" and body.text.format.type != "text":
            raise InvalidRequest(
                "A forced tool_choice and a text.format contradict each other.",
                param="tool_choice",
            )
    for name in wanted:
        if name not in toolbox.routes:
            raise InvalidRequest(
                f"tool_choice names '{name[:64]}', which is not among the tools.",
                param="tool_choice",
            )
    if (choice == "required" or wanted) and not able.constraints:
        raise NotSupported("This model cannot be held to a tool_choice.", param="tool_choice")


def _later(what: str, param: str) -> NotSupported:
    return NotSupported(f"{what}: not supported yet.", param=param)
