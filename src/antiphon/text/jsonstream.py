"""A strict JSON reader that is fed piece by piece.

Decides, character by character, whether text is still the beginning of valid JSON and where a
value ends. It reports the members of the outermost object as they pass, so that a caller can
stream one of them before the object is complete. Knows nothing of tools.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from typing import Literal

_SPACE = " \t\n\r"
_LITERALS = {"t": "true", "f": "false", "n": "null"}
_ESCAPES = '"\\/bfnrt'
_PLAIN = re.compile(r'[^"\\\x00-\x1f]+')
MAX_DEPTH = 128


class NotJson(ValueError):
    """The text cannot become valid JSON any more."""


@dataclass(slots=True)
class Member:
    """A member of the outermost object: its value is `text[start:end]` of the reader."""

    key: str
    start: int
    end: int | None = None


class JsonReader:
    """Reads one value; `members` are those of an outer object, as far as it is read.

    `done` is set at the end of the value. A number at top level has no end of its own, so
    only objects, arrays and strings are taken there.
    """

    def __init__(self) -> None:
        self.members: list[Member] = []
        self.done = False
        self._length = 0
        self._pieces: list[str] = []
        self._stack: list[Literal["{", "["]] = []
        self._expect = "value"
        self._in_quotes = False
        self._escape = 0
        self._key: list[str] = []
        self._scalar = ""
        self._ended = False

    @property
    def text(self) -> str:
        """Everything consumed so far."""
        if len(self._pieces) > 1:
            self._pieces = ["".join(self._pieces)]
        return self._pieces[0] if self._pieces else ""

    def feed(self, text: str) -> int:
        """Consume as much as belongs to the value; the number of characters taken.

        Raises:
            NotJson: at the first character that no JSON can have there.
        """
        at = 0
        try:
            while at < len(text) and not self.done:
                if self._in_quotes and not self._escape and (plain := _PLAIN.match(text, at)):
                    step = plain.end() - at
                    if self._expect.startswith("key"):
                        self._key.append(plain[0])
                else:
                    self._take(text[at])
                    step = 1
                at += step
                self._length += step
                if self._ended:
                    self._close_value()
        finally:
            # What was valid stays, so that the result does not depend on how text is split.
            self._pieces.append(text[:at])
        return at

    def _take(self, c: str) -> None:
        self._ended = False
        if self._in_quotes:
            self._in_string(c)
        elif self._scalar:
            self._in_scalar(c)
        elif c in _SPACE:
            return
        else:
            self._structure(c)

    def _structure(self, c: str) -> None:
        expect = self._expect
        if expect in ("value", "value or ]"):
            if c == "]" and expect == "value or ]":
                self._pop("[")
                return
            self._begin_value(c)
        elif expect in ("key", "key or }"):
            if c == "}" and expect == "key or }":
                self._pop("{")
            elif c == '"':
                self._in_quotes, self._key = True, []
            else:
                raise NotJson
        elif expect == "colon":
            if c != ":":
                raise NotJson
            self._expect = "value"
        elif expect == "comma":
            if c == ",":
                self._expect = "key" if self._stack[-1] == "{" else "value"
            elif c == "}":
                self._pop("{")
            elif c == "]":
                self._pop("[")
            else:
                raise NotJson

    def _begin_value(self, c: str) -> None:
        if len(self._stack) == 1 and self._stack[0] == "{":
            self.members[-1].start = self._length
        if c == '"':
            self._in_quotes = True
            self._expect = "string"
        elif c in "{[":
            if len(self._stack) >= MAX_DEPTH:
                raise NotJson
            self._stack.append("{" if c == "{" else "[")
            self._expect = "key or }" if c == "{" else "value or ]"
        elif self._stack and (c in "-0123456789" or c in _LITERALS):
            self._scalar = c
        else:
            raise NotJson

    def _in_string(self, c: str) -> None:
        key = self._expect.startswith("key")
        if self._escape:
            self._in_escape(c)
        elif c == "\\":
            self._escape = 1
        elif c == '"':
            self._in_quotes = False
            if not key:
                self._ended = True
                return
            if len(self._stack) == 1:
                self.members.append(Member(json.loads('"' + "".join(self._key) + '"'), -1))
            self._expect = "colon"
            return
        elif c < " ":
            raise NotJson
        if key:
            self._key.append(c)

    def _in_escape(self, c: str) -> None:
        """`_escape` is 1 after the backslash, 2 to 5 inside the four digits of `\\u`."""
        if self._escape == 1:
            if c == "u":
                self._escape = 2
            elif c in _ESCAPES:
                self._escape = 0
            else:
                raise NotJson
            return
        if c not in "0123456789abcdefABCDEF":
            raise NotJson
        self._escape = self._escape + 1 if self._escape < 5 else 0

    def _in_scalar(self, c: str) -> None:
        if c in _SPACE or c in ",]}":
            try:
                json.loads(self._scalar)
            except ValueError:
                raise NotJson from None
            self._scalar = ""
            self._close_value()
            if c not in _SPACE:
                self._structure(c)
            return
        grown = self._scalar + c
        literal = _LITERALS.get(grown[0])
        if literal is not None:
            if not literal.startswith(grown):
                raise NotJson
        elif c not in "0123456789+-.eE":
            raise NotJson
        self._scalar = grown

    def _pop(self, opener: Literal["{", "["]) -> None:
        if not self._stack or self._stack[-1] != opener:
            raise NotJson
        self._stack.pop()
        self._ended = True

    def _close_value(self) -> None:
        """A value has ended at the end of `text`."""
        self._ended = False
        if not self._stack:
            self.done = True
            return
        if len(self._stack) == 1 and self._stack[0] == "{" and self.members[-1].end is None:
            self.members[-1].end = self._length
        self._expect = "comma"
