"""`call:NAME{key:value,…}` between markers, and calls in a `tool_code` fence: Gemma.

Decides how the members of such a call are written: keys are bare, strings stand between a
quote of the family's own.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from antiphon.text.tools import pythonic
from antiphon.text.tools.base import Declared
from antiphon.text.tools.literal import Literals
from antiphon.text.tools.whole import Call, Section, Whole

QUOTES = ("<escape>", '<|"|>')
_NAME = re.compile(r"[\w.\-]+")


def _calls(text: str, declared: Declared) -> Sequence[Call] | None:
    literals = Literals(text, QUOTES)
    found: list[Call] = []
    while not literals.over():
        literals.need("call:")
        name = literals.match(_NAME)
        literals.need("{")
        found.append(Call(name, literals.members("}", ":")))
    return found


GEMMA = Whole(
    name="gemma",
    sections={
        "<|tool_call>": Section(_calls, ("<tool_call|>",)),
        "<start_function_call>": Section(_calls, ("<end_function_call>",)),
        "```tool_code": Section(pythonic.calls, ("```",)),
    },
    # A model goes on with these where it is not stopped behind a call.
    skip=("<|tool_response>", "<start_function_response>"),
    further=QUOTES,
)
