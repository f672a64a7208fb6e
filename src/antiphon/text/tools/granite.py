"""`<|tool_call|>[{"name": …, "arguments": …}]`: Granite 3, and Phi 4 mini.

Decides only the markers; the list is read as everywhere.
"""

from __future__ import annotations

from antiphon.text.tools.jsoncall import Listed

GRANITE = Listed(
    name="granite",
    openers=("<|tool_call|>", "<tool_call>"),
    closers=("</tool_call>", "<|/tool_call|>"),
)
