"""`[name(key="value"), …]`: LFM2, Llama 4, OLMo 3.

Decides that such a list is a call only where an answer begins, or between markers; there the
calls may also stand one a line. Arguments are named, and literals only. Instead of a call an
object with its name and its arguments is read as well, as LFM2 writes it for some templates.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from antiphon.text.tools.base import Declared
from antiphon.text.tools.literal import Literals
from antiphon.text.tools.whole import Call, Section, Whole

_NAME = re.compile(r"[A-Za-z_][\w.\-]*")
_BEGUN = re.compile(r"\[\s*(?:[A-Za-z_][\w.\-]*\s*(?:\(.*)?)?", re.DOTALL)


def calls(text: str, declared: Declared) -> Sequence[Call] | None:
    """The calls of a list, or of lines.

    Raises:
        ValueError: what is written is something else.
    """
    literals = Literals(text)
    found: list[Call] = []
    if literals.take("["):
        while not literals.take("]"):
            found.append(_call(literals))
            if not literals.take(","):
                literals.need("]")
                break
        return found if literals.over() else None
    while not literals.over():
        found.append(_call(literals))
    return found


def _call(literals: Literals) -> Call:
    if literals.take("{"):
        match literals.members("}", ":"):
            case {"name": str(name), "arguments": dict(arguments)}:
                return Call(name, arguments)
        raise ValueError("no call")
    name = literals.match(_NAME)
    literals.need("(")
    return Call(name, literals.members(")", "="))


PYTHONIC = Whole(
    name="pythonic",
    sections={
        "<|tool_call_start|>": Section(calls, ("<|tool_call_end|>",)),
        "<|python_start|>": Section(calls, ("<|python_end|>",)),
        "<function_calls>": Section(calls, ("</function_calls>",)),
    },
    # Not every `]` is tried: arguments may be full of them, and the answer's end is the last try.
    first={"[": Section(calls, (")]", ") ]", ")\n]"), keep=True, begun=_BEGUN.fullmatch)},
)
