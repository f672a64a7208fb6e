"""A call written as one JSON object: `{"name": …, "arguments": {…}}`.

Decides when such a call may be shown while it is written: as soon as its name is known and
declared and its arguments are an object. Shared by the dialects that write JSON.
"""

from __future__ import annotations

import json
from abc import abstractmethod
from dataclasses import dataclass
from typing import Literal

from antiphon.text.jsonstream import JsonReader, Member, NotJson
from antiphon.text.tools.base import (
    SPACE,
    Arguments,
    Begin,
    Declared,
    End,
    Event,
    SectionReader,
    json_text,
)

NAMES = ("name", "function", "tool", "tool_name")
ARGUMENTS = ("arguments", "parameters", "args", "input")


class JsonCall:
    """Reads the object. `given` is the name where it stands outside, as Mistral writes it."""

    def __init__(self, declared: Declared, given: str | None = None) -> None:
        self.done = False
        self.broken = False
        self.events: list[Event] = []
        self._declared = declared
        self._json = JsonReader()
        self._given = given
        self._begun = False
        self._sent = 0

    def feed(self, text: str) -> int:
        """Take the text of the object, and nothing behind it."""
        taken = 0
        valid = True
        try:
            taken = self._json.feed(text)
        except NotJson:
            valid = False
        self._show()
        self.broken = self.broken or not valid
        if self._json.done and not self.broken:
            self._close()
        return taken

    def _show(self) -> None:
        """Stream what is known, which depends on the text so far and not on its pieces."""
        if self._given is not None:
            self._stream(0, self._given)
        elif (name := self._member(NAMES)) is not None and name.end is not None:
            arguments = self._member(ARGUMENTS)
            if self._declared.resolve(self._name(name)) is None:
                self.broken = True
            elif arguments is not None and arguments.start >= 0:
                self._stream(arguments.start, self._name(name), arguments.end)

    def _stream(self, start: int, name: str, end: int | None = None) -> None:
        """Show the arguments from `start` as far as they are written, if they are an object."""
        resolved = self._declared.resolve(name)
        if resolved is None:
            self.broken = True
            return
        text = self._json.text[start:end]
        if not text.startswith("{"):
            return
        if not self._begun:
            self._begun = True
            self.events.append(Begin(resolved))
        if len(text) > self._sent:
            self.events.append(Arguments(text[self._sent :]))
            self._sent = len(text)

    def _close(self) -> None:
        self.done = True
        if self._begun:
            self.events.append(End())
            return
        name, arguments = self._whole()
        resolved = self._declared.resolve(name) if name is not None else None
        if resolved is None or arguments is None:
            self.done, self.broken = False, True
            return
        self.events += [Begin(resolved), Arguments(arguments), End()]

    def _whole(self) -> tuple[str | None, str | None]:
        """Name and arguments of a complete object whose arguments could not be streamed."""
        value = json.loads(self._json.text)
        if self._given is not None:
            return self._given, _object(value)
        if not isinstance(value, dict):
            return None, None
        name = next((value[key] for key in value if key in NAMES), None)
        inner = next((value[key] for key in value if key in ARGUMENTS), None)
        return name if isinstance(name, str) else None, _object(inner)

    def _member(self, keys: tuple[str, ...]) -> Member | None:
        # In the order of the text: what is shown early must not change later.
        return next((member for member in self._json.members if member.key in keys), None)

    def _name(self, member: Member) -> str:
        value = json.loads(self._json.text[member.start : member.end])
        return value if isinstance(value, str) else ""


def _object(value: object) -> str | None:
    """The JSON text of arguments: an object, one inside a string, or nothing at all."""
    if isinstance(value, str):
        try:
            value = json.loads(value) if value.strip() else None
        except (ValueError, RecursionError):
            return None
    if value is None:
        return "{}"
    try:
        return json_text(value) if isinstance(value, dict) else None
    except ValueError:
        return None


class JsonCallReader(SectionReader):
    """A section whose calls are JSON objects; `_between` reads what stands around them.

    `closers` are the markers of which one may end the section.
    """

    def __init__(self, declared: Declared, closers: tuple[str, ...] = ()) -> None:
        super().__init__(declared)
        self._call: JsonCall | None = None
        self._closers = closers
        self._closing = ""

    def _take(self, text: str) -> int:
        call = self._call
        if call is None:
            return self._between(text[0])
        taken = call.feed(text)
        self.events += call.events
        call.events.clear()
        self.broken = call.broken
        if call.done:
            self._call = None
            self._calls += 1
            self._settled = True
        return taken

    def _unfinished(self) -> bool:
        return self._call is not None

    @abstractmethod
    def _between(self, character: str) -> int:
        """One step outside of objects: 1 where the character is taken, else 0."""

    def _close(self, character: str) -> int:
        """A step of `_between`: the next character of a closer, which may be missing."""
        grown = self._closing + character
        if any(closer.startswith(grown) for closer in self._closers):
            self._closing = grown
            if grown in self._closers:
                self.done, self.broken = self._calls > 0, not self._calls
            return 1
        # Something else stands where the closer should: the calls before it are good.
        self.broken = bool(self._closing) or not self._calls
        self.done = not self.broken
        return 0


class ListedReader(JsonCallReader):
    """Reads objects up to a closer: one after the other, or as a JSON list."""

    def __init__(self, declared: Declared, closers: tuple[str, ...] = ()) -> None:
        super().__init__(declared, closers)
        self._list: Literal["no", "open", "over"] = "no"

    def _between(self, character: str) -> int:
        if not self._closing:
            if character in SPACE or (character == "," and self._list == "open"):
                return 1
            if character == "{" and self._list != "over":
                self._call = JsonCall(self._declared)
                return 0
            if character == "[" and self._list == "no" and not self._calls:
                self._list = "open"
                return 1
            if character == "]" and self._list == "open" and self._calls:
                self._list, self._settled = "over", True
                return 1
        return self._close(character)


@dataclass(frozen=True, slots=True)
class Listed:
    """A dialect of such sections."""

    name: str
    openers: tuple[str, ...]
    closers: tuple[str, ...]
    skip: tuple[str, ...] = ()
    leading: tuple[str, ...] = ()

    @property
    def inner(self) -> tuple[str, ...]:
        """The markers inside of sections."""
        return self.closers

    def read(self, opener: str, declared: Declared) -> ListedReader:
        """A reader for the text behind the opener."""
        return ListedReader(declared, self.closers)
