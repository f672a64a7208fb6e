"""What a tool dialect is.

Decides the seam between the parser of an answer and the families' ways to write a call: a
dialect names the markers that begin a section of calls, and makes a reader for each section.
A reader sees the text after the marker, piece by piece, and says what it found.
"""

from __future__ import annotations

import json
import math
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

from antiphon.engine.types import ToolSpec


@dataclass(frozen=True, slots=True)
class Begin:
    """A call of a declared function begins."""

    name: str


@dataclass(frozen=True, slots=True)
class Arguments:
    """The next piece of the JSON text of its arguments."""

    text: str


@dataclass(frozen=True, slots=True)
class End:
    """The call is complete; its arguments are a JSON object."""


Event = Begin | Arguments | End

SPACE = " \t\r\n"


@dataclass(frozen=True, slots=True)
class Declared:
    """The functions that may be called, by name."""

    tools: Mapping[str, ToolSpec] = field(default_factory=dict)

    @classmethod
    def of(cls, tools: Iterable[ToolSpec]) -> Declared:
        """From the tools of a prompt."""
        return cls({tool.name: tool for tool in tools})

    def resolve(self, name: str) -> str | None:
        """The declared name that a model means, or None. Models add `functions.` at times."""
        if name in self.tools:
            return name
        bare = name.rpartition(".")[2]
        return bare if bare in self.tools else None

    def types(self, name: str, parameter: str) -> frozenset[str]:
        """The JSON types that the schema of a function allows for a parameter; empty: any."""
        schema = self.tools[name].parameters or {}
        properties = schema.get("properties")
        inner = properties.get(parameter) if isinstance(properties, Mapping) else None
        if not isinstance(inner, Mapping):
            return frozenset()
        options: list[Any] = [inner]
        for union in (inner.get("anyOf"), inner.get("oneOf")):
            options += union if isinstance(union, list) else ()
        found: set[str] = set()
        for option in options:
            kind = option.get("type") if isinstance(option, Mapping) else None
            kinds = kind if isinstance(kind, list) else [kind]
            found.update(kind for kind in kinds if isinstance(kind, str))
        return frozenset(found)

    def value(self, name: str, parameter: str, text: str) -> Any:
        """The JSON value of a parameter that is written as bare text.

        What the schema calls a string stays as it is; anything else is read as JSON, or as
        Python's constants, and is a string where it is neither.
        """
        types = self.types(name, parameter)
        if types == {"string"}:
            return text
        if text.strip() in _CONSTANTS and types & {"boolean", "null"}:
            return _CONSTANTS[text.strip()]
        try:
            value = json.loads(text, parse_constant=_number, parse_float=_number)
        except (ValueError, RecursionError):
            return text
        return text if "string" in types and not types & _kinds(value) else value


_CONSTANTS: Mapping[str, Any] = {"True": True, "False": False, "None": None}


def _number(text: str) -> float:
    """A number that JSON can hold, which rules out NaN and the infinite."""
    number = float(text)
    if not math.isfinite(number):
        raise ValueError(text)
    return number


def _kinds(value: Any) -> set[str]:
    """The JSON types of a value."""
    match value:
        case None:
            return {"null"}
        case bool():
            return {"boolean"}
        case int():
            return {"integer", "number"}
        case float():
            return {"number"}
        case str():
            return {"string"}
        case list():
            return {"array"}
    return {"object"}


def json_text(value: Any) -> str:
    """A value as JSON text that can be sent as UTF-8.

    Raises:
        ValueError: JSON has no such number.
    """
    text = json.dumps(value, ensure_ascii=False, allow_nan=False)
    try:
        text.encode()
    except UnicodeEncodeError:
        # Half of a surrogate pair exists as an escape only.
        return json.dumps(value)
    return text


class Reader(Protocol):
    """Reads one section of calls.

    Exactly one of `done` and `broken` is set when it wants no more text; `rest` is then what
    must be read as ordinary text: behind a section that is done, or everything since the last
    `End` (else the opener) of one that is broken (contract T6). Of the latter the first
    `literal` characters hold no markers. What a reader finds depends on the text only, never
    on how it was split.
    """

    done: bool
    broken: bool
    rest: str
    literal: int
    events: list[Event]

    def feed(self, text: str) -> None:
        """Take the next piece. What is found is appended to `events`; the caller empties it."""
        ...

    def finish(self) -> None:
        """The generation is over: decide between `done` and `broken`."""
        ...


class Dialect(Protocol):
    """One way to write calls.

    `openers` begin a section anywhere, `leading` ones only where an answer begins; a leading
    opener is fed to the reader, being part of the call itself. `skip` are markers around
    sections that have no meaning of their own, `inner` the markers inside of sections.
    """

    @property
    def name(self) -> str: ...
    @property
    def openers(self) -> tuple[str, ...]: ...
    @property
    def leading(self) -> tuple[str, ...]: ...
    @property
    def skip(self) -> tuple[str, ...]: ...
    @property
    def inner(self) -> tuple[str, ...]: ...

    def read(self, opener: str, declared: Declared) -> Reader:
        """A reader for the section of this opener."""
        ...


class SectionReader(ABC):
    """A reader that takes its section step by step; `_take` is one step.

    `_calls` counts the complete calls. A step sets `_settled` where everything up to here is
    known to be markup.
    """

    def __init__(self, declared: Declared) -> None:
        self.done = False
        self.broken = False
        self.rest = ""
        self.literal = 0
        self.events: list[Event] = []
        self._declared = declared
        self._calls = 0
        self._settled = False
        self._since = ""

    def feed(self, text: str) -> None:
        """Take the next piece of the section."""
        at = 0
        while at < len(text) and not (self.done or self.broken):
            self._settled = False
            taken = self._take(text[at:])
            self._since = "" if self._settled else self._since + text[at : at + taken]
            at += taken
        if self.done or self.broken:
            self.rest = text[at:] if self.done else self._since + text[at:]

    def finish(self) -> None:
        """Complete calls are calls, even where the end of the section is missing."""
        self.broken = self._unfinished() or not self._calls
        self.done = not self.broken
        if self.broken:
            self.rest = self._since

    @abstractmethod
    def _take(self, text: str) -> int:
        """One step: take at least one character, or set `done` or `broken`, or change state."""

    @abstractmethod
    def _unfinished(self) -> bool:
        """Whether a call has begun that is not complete."""
