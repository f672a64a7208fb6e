"""`[TOOL_CALLS]name[ARGS]{…}` and `[TOOL_CALLS][{"name": …, "arguments": …}, …]`: Mistral.

Decides which of the two forms a section has. In the first every call has its own marker.
"""

from __future__ import annotations

import re

from antiphon.text.tools.base import SPACE, Declared
from antiphon.text.tools.jsoncall import JsonCall, JsonCallReader

OPEN, ARGS, CALL_ID = "[TOOL_CALLS]", "[ARGS]", "[CALL_ID]"
_HEAD = re.compile(r"[A-Za-z0-9_.\-]{0,128}(\[CALL_ID\][A-Za-z0-9_\-]{0,64})?")


class Mistral:
    """Both forms, told apart by the first character."""

    name = "mistral"
    openers = (OPEN,)
    leading: tuple[str, ...] = ()
    skip: tuple[str, ...] = ()
    inner = (ARGS, CALL_ID)

    def read(self, opener: str, declared: Declared) -> MistralReader:
        """A reader for the text behind `[TOOL_CALLS]`."""
        return MistralReader(declared)


class MistralReader(JsonCallReader):
    """Reads a list of objects, or a name and its arguments."""

    def __init__(self, declared: Declared) -> None:
        super().__init__(declared)
        self._head: str | None = ""
        self._list = False
        self._given: str | None = None

    def _take(self, text: str) -> int:
        taken = super()._take(text)
        if self._calls and not self._list and not self.broken:
            self.done = True
        return taken

    def _between(self, character: str) -> int:
        if self._head is not None:
            self._heading(self._head, character)
            return 0 if self.broken else 1
        if character == "{":
            self._call = JsonCall(self._declared, self._given)
            return 0
        if character == "]" and self._list:
            self.done, self.broken = self._calls > 0, not self._calls
            return 1
        self.broken = character not in SPACE and (character != "," or not self._list)
        return 0 if self.broken else 1

    def _heading(self, head: str, character: str) -> None:
        """Before the first object: `[`, or a name up to `[ARGS]`."""
        if not head and character in SPACE:
            return
        if not head and character == "[":
            self._list, self._head = True, None
            return
        head += character
        name, marker, _ = head.partition(ARGS)
        if not marker:
            self._head = head
            self.broken = not _begins(head)
            return
        self._head = None
        name = name.partition(CALL_ID)[0].strip()
        self._given = self._declared.resolve(name)
        self.broken = self._given is None


def _begins(head: str) -> bool:
    """Whether this may still become a name, perhaps with an id, before `[ARGS]`."""
    for length in range(len(ARGS)):
        if head.endswith(ARGS[:length]) and _HEAD.fullmatch(head[: len(head) - length]):
            return True
    for length in range(1, len(CALL_ID)):
        if head.endswith(CALL_ID[:length]) and _HEAD.fullmatch(head[: len(head) - length]):
            return True
    return False
