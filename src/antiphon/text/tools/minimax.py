"""`<minimax:tool_call><invoke name="…"><parameter name="…">…</parameter></invoke>…`: MiniMax M2.

Decides how a section is taken apart. The values are bare text, which the schema gives a type.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from antiphon.text.tools.base import Declared
from antiphon.text.tools.whole import Call, Section, Unfinished, Whole

_INVOKE = re.compile(r"\s*<invoke name=([\"']?)(.*?)\1>\s*", re.DOTALL)
_PARAMETER = re.compile(r"\s*<parameter name=([\"']?)(.*?)\1>(.*?)</parameter>\s*", re.DOTALL)
_INVOKE_END = re.compile(r"\s*</invoke>\s*")


def _calls(text: str, declared: Declared) -> Sequence[Call] | None:
    found: list[Call] = []
    at = 0
    while at < len(text):
        invoke = _INVOKE.match(text, at)
        name = declared.resolve(invoke[2]) if invoke is not None else None
        if invoke is None or name is None:
            return None
        at = invoke.end()
        arguments: dict[str, Any] = {}
        while member := _PARAMETER.match(text, at):
            arguments[member[2]] = declared.value(name, member[2], member[3])
            at = member.end()
        end = _INVOKE_END.match(text, at)
        if end is None:
            if text.startswith("<parameter", at):
                raise Unfinished
            return None
        at = end.end()
        found.append(Call(name, arguments))
    return found


MINIMAX = Whole(
    name="minimax",
    sections={"<minimax:tool_call>": Section(_calls, ("</minimax:tool_call>",))},
)
