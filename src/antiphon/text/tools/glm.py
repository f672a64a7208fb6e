"""`<tool_call>NAME<arg_key>key</arg_key><arg_value>value</arg_value>…</tool_call>`: GLM 4.

Decides how a call is taken apart. The values are bare text, which the schema gives a type.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from antiphon.text.tools.base import Declared
from antiphon.text.tools.whole import Call, Section, Unfinished, Whole

KEY, VALUE, VALUE_END = "<arg_key>", "<arg_value>", "</arg_value>"
_MEMBER = re.compile(r"\s*<arg_key>(.*?)</arg_key>\s*<arg_value>(.*?)</arg_value>\s*", re.DOTALL)


def _calls(text: str, declared: Declared) -> Sequence[Call] | None:
    head, key, members = text.partition(KEY)
    name = declared.resolve(head.strip())
    if name is None:
        return None
    members = key + members
    arguments: dict[str, Any] = {}
    at = 0
    while at < len(members):
        member = _MEMBER.match(members, at)
        if member is None:
            if VALUE in members[at:] and VALUE_END not in members[at:]:
                raise Unfinished
            return None
        parameter = member[1].strip()
        arguments[parameter] = declared.value(name, parameter, member[2])
        at = member.end()
    return [Call(name, arguments)]


GLM = Whole(
    name="glm",
    sections={"<tool_call>": Section(_calls, ("</tool_call>",))},
    further=(KEY, "</arg_key>", VALUE, VALUE_END),
)
