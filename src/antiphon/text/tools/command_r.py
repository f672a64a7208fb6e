"""`<|START_ACTION|>[{"tool_name": …, "parameters": …}]<|END_ACTION|>`: Command R and A.

Decides only the markers, among them the older form's fence behind `Action:`.
"""

from __future__ import annotations

from antiphon.text.tools.jsoncall import Listed

# Around the visible text, also where no tools are declared.
SKIP = ("<|START_RESPONSE|>", "<|END_RESPONSE|>", "<|START_TEXT|>", "<|END_TEXT|>")

COMMAND_R = Listed(
    name="command_r",
    openers=("<|START_ACTION|>", "Action:\n```json", "Action: ```json", "Action:```json"),
    closers=("<|END_ACTION|>", "```"),
    skip=SKIP,
)
