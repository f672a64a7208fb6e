"""`<custom_tool_call>NAME⏎input</custom_tool_call>`: calls whose input is free text.

Decides how a custom tool is called (contract T2, P2). A patch or a program inside a JSON
string is hard to write for a model and impossible to hold to the client's grammar; here it
stands as it is. To the rest of the text layer it is a function with one argument, `input`.
"""

from __future__ import annotations

import json
from collections.abc import Sequence

from antiphon.text import scanner
from antiphon.text.tools.base import Arguments, Begin, Declared, Dialect, End, Event, Reader

OPEN, CLOSE = "<custom_tool_call>", "</custom_tool_call>"
MAX_NAME = 256


class WithRaw:
    """A family's dialect, and beside it the form of free input."""

    def __init__(self, dialect: Dialect) -> None:
        self._dialect = dialect
        self.name = dialect.name
        self.openers = (*dialect.openers, OPEN)
        self.leading = dialect.leading
        self.skip = dialect.skip
        self.inner = dialect.inner

    def read(self, opener: str, declared: Declared) -> Reader:
        """A reader for the section of this opener."""
        if opener == OPEN:
            return RawReader(declared)
        return self._dialect.read(opener, declared)


class RawReader:
    """Reads a name, a line break and everything up to the end marker."""

    ENDS: Sequence[str] = ("\n" + CLOSE, CLOSE)

    def __init__(self, declared: Declared) -> None:
        self.done = False
        self.broken = False
        self.rest = ""
        self.literal = 0
        self.events: list[Event] = []
        self._declared = declared
        self._named = False
        self._text = ""
        self._since = ""

    def feed(self, text: str) -> None:
        """Take the next piece of the section."""
        self._text += text
        self._since += text
        if not self._named:
            self._name()
        if self._named:
            self._input()
        if self.broken:
            self.rest, self.literal = self._since, len(self._since) - len(self._text)

    def finish(self) -> None:
        """Without its end marker this is no call."""
        self.broken, self.rest, self.literal = True, self._since, len(self._since)

    def _name(self) -> None:
        name, end, rest = self._text.partition("\n")
        if not end:
            self.broken = len(name) > MAX_NAME
            return
        resolved = self._declared.resolve(name.strip())
        if resolved is None or not self._declared.tools[resolved].raw:
            self.broken = True
            return
        self._named, self._text = True, rest
        self.events += [Begin(resolved), Arguments('{"input": "')]

    def _input(self) -> None:
        found = scanner.find(self._text, self.ENDS)
        if found is None:
            keep = scanner.held(self._text, self.ENDS)
            self._write(self._text[: len(self._text) - keep])
            self._text = self._text[len(self._text) - keep :]
            return
        self._write(self._text[: found.at])
        self.rest = self._text[found.at + len(found.marker) :]
        self.events += [Arguments('"}'), End()]
        self.done = True

    def _write(self, text: str) -> None:
        if text:
            self.events.append(Arguments(json.dumps(text, ensure_ascii=False)[1:-1]))
