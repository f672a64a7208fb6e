"""A call written as a head with its name, a JSON object, and a closer.

Decides nothing about a family: the dialects that write calls like this are data for it. The
arguments are shown while they are written.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from antiphon.text.tools.base import SPACE, Arguments, Begin, Declared, End
from antiphon.text.tools.jsoncall import JsonCall, JsonCallReader

MAX_HEAD = 300
_ANYTHING = re.compile(r"(?s).*")


@dataclass(frozen=True, slots=True)
class Headed:
    """A dialect of heads.

    A head is over as soon as all of it matches `head`, of which one group is the function's
    name. What it may look like until then is `begun`. Heads with a name of `said` begin
    ordinary text. Of `closers` one may stand behind the object.
    """

    name: str
    openers: tuple[str, ...]
    head: re.Pattern[str]
    closers: tuple[str, ...] = ()
    leading: tuple[str, ...] = ()
    skip: tuple[str, ...] = ()
    inner: tuple[str, ...] = ()
    begun: re.Pattern[str] = _ANYTHING
    said: frozenset[str] = frozenset()

    def read(self, opener: str, declared: Declared) -> HeadedReader:
        """A reader for the text behind the opener."""
        return HeadedReader(self, declared)


class HeadedReader(JsonCallReader):
    """Reads one call."""

    def __init__(self, dialect: Headed, declared: Declared) -> None:
        super().__init__(declared, dialect.closers)
        self._dialect = dialect
        self._head = ""
        self._name = ""

    def _between(self, character: str) -> int:
        if not self._name:
            self._heading(character)
            return 0 if self.broken else 1
        if not self._closing:
            if character in SPACE:
                return 1
            if character in '{"' and not self._calls:
                self._call = JsonCall(self._declared, given=self._name)
                return 0
        taken = self._close(character)
        if self._closing in self._closers and not self._calls:
            # Nothing at all stands where the arguments should.
            self.events += [Begin(self._name), Arguments("{}"), End()]
            self._calls, self.done, self.broken, self._settled = 1, True, False, True
        return taken

    def _heading(self, character: str) -> None:
        self._head += character
        match = self._dialect.head.fullmatch(self._head)
        if match is None:
            begun = len(self._head) <= MAX_HEAD and self._dialect.begun.fullmatch(self._head)
            self.broken = not begun
            return
        name = next(filter(None, match.groups()), "")
        self.done = name in self._dialect.said
        resolved = self._declared.resolve(name)
        self.broken = resolved is None and not self.done
        self._name = resolved or ""
