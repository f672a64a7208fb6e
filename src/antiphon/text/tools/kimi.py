"""`<|tool_call_begin|>functions.NAME:0<|tool_call_argument_begin|>{…}<|tool_call_end|>`: Kimi K2.

Decides that the markers around all calls have no meaning, and what of a call's id is its name.
"""

from __future__ import annotations

import re

from antiphon.text.tools.headed import Headed

SECTION = "<|tool_calls_section_begin|>"

KIMI = Headed(
    name="kimi",
    openers=("<|tool_call_begin|>",),
    head=re.compile(r"\s*([^\s:<]+)(?::\d+)?\s*<\|tool_call_argument_begin\|>"),
    closers=("<|tool_call_end|>",),
    skip=(SECTION, "<|tool_calls_section_end|>"),
    inner=("<|tool_call_argument_begin|>", "<|tool_call_end|>"),
)
