"""Tools as plain text in the Hermes form, for models whose template knows none.

Decides how declarations, calls and results are worded inside ordinary turns. Models that
were trained on the form recognise it; others can follow it. Knows no template and no model.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

CALL_OPEN, CALL_CLOSE = "<tool_call>", "</tool_call>"
RESULT_OPEN, RESULT_CLOSE = "<tool_response>", "</tool_response>"
MARKERS = (CALL_OPEN, CALL_CLOSE, RESULT_OPEN, RESULT_CLOSE)


def declare(tools: Sequence[dict[str, Any]]) -> str:
    """The part of a system message that offers `tools`, which are in chat form."""
    declared = "\n".join(_json(tool) for tool in tools)
    return (
        "# Tools\n\n"
        "You can call functions to help with the user's request. "
        "These are their signatures:\n"
        f"<tools>\n{declared}\n</tools>\n\n"
        "To call a function, write a JSON object with its name and its arguments between "
        f"{CALL_OPEN} and {CALL_CLOSE}:\n"
        f'{CALL_OPEN}\n{{"name": <function-name>, "arguments": <arguments-object>}}\n{CALL_CLOSE}'
    )


def call(name: str, arguments: Any) -> str:
    """A call that was made; `arguments` is a JSON value."""
    return f"{CALL_OPEN}\n{_json({'name': name, 'arguments': arguments})}\n{CALL_CLOSE}"


def result(output: str) -> str:
    """What a call returned."""
    return f"{RESULT_OPEN}\n{output}\n{RESULT_CLOSE}"


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)
