"""Calls that arrive whole: the section is collected, then parsed once.

Decides where such a section ends. Families whose calls need no streaming (contract T5) are
one parse function each, together with their markers.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from antiphon.text import scanner
from antiphon.text.tools.base import Arguments, Begin, Declared, End, Event, json_text


class Call(NamedTuple):
    """A parsed call: its name as written, and its arguments."""

    name: str
    arguments: dict[str, Any]


class Unfinished(ValueError):
    """The text ends inside a value: a closer that stands there belongs to the value."""


Parse = Callable[[str, Declared], Sequence[Call] | None]


class Section(NamedTuple):
    """How the text behind an opener is read.

    `parse` gets the text up to a closer (or up to the end of the answer) and returns the calls,
    or None where it cannot be read. It raises `Unfinished` where the section goes on behind
    this closer. With `keep` the closer is part of the text. `begun` says early whether the
    text so far may become a section.
    """

    parse: Parse
    closers: tuple[str, ...]
    keep: bool = False
    begun: Callable[[str], object] | None = None


@dataclass(frozen=True, slots=True)
class Whole:
    """A dialect of collected sections, by opener; `first` are those of leading openers."""

    name: str
    sections: Mapping[str, Section]
    first: Mapping[str, Section] = field(default_factory=dict)
    skip: tuple[str, ...] = ()
    further: tuple[str, ...] = ()

    @property
    def openers(self) -> tuple[str, ...]:
        """The openers that begin a section anywhere."""
        return tuple(self.sections)

    @property
    def leading(self) -> tuple[str, ...]:
        """The openers that begin a section where an answer begins."""
        return tuple(self.first)

    @property
    def inner(self) -> tuple[str, ...]:
        """The markers inside of sections; `further` are those that are no closers."""
        closers = [section.closers for section in self.sections.values()]
        return (*sum(closers, ()), *self.further)

    def read(self, opener: str, declared: Declared) -> WholeReader:
        """A reader for the text behind the opener, or from a leading one on."""
        section = self.sections.get(opener) or self.first[opener]
        return WholeReader(section, declared)


class WholeReader:
    """Collects a section."""

    def __init__(self, section: Section, declared: Declared) -> None:
        self.done = False
        self.broken = False
        self.rest = ""
        self.literal = 0
        self.events: list[Event] = []
        self._section = section
        self._declared = declared
        self._text = ""
        self._seen = 0

    def feed(self, text: str) -> None:
        """Collect until a closer."""
        self._text += text
        closers = self._section.closers
        while found := scanner.find(self._text, closers, self._seen):
            self._seen = found.at + len(found.marker)
            end = self._seen if self._section.keep else found.at
            if self._parse(self._text[:end], self._text[self._seen :]):
                return
        self._seen = max(self._seen, len(self._text) - scanner.held(self._text, closers))
        if self._section.begun is not None and not self._section.begun(self._text):
            self.broken, self.rest = True, self._text

    def finish(self) -> None:
        """The end of the answer is the end of the section."""
        if not self._parse(self._text, ""):
            self.broken, self.rest = True, self._text

    def _parse(self, section: str, rest: str) -> bool:
        """Whether this text decides about the section."""
        try:
            calls = self._section.parse(section, self._declared)
            events = [event for call in calls or () for event in self._events(call)]
        except Unfinished:
            return False
        except ValueError:
            events = []
        self.events += events
        self.done, self.broken = bool(events), not events
        self.rest = rest if events else self._text
        return True

    def _events(self, call: Call) -> tuple[Begin, Arguments, End]:
        name = self._declared.resolve(call.name)
        if name is None:
            raise ValueError(call.name)
        return Begin(name), Arguments(json_text(call.arguments)), End()
