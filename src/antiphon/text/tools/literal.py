"""Reads values that are written as in Python or JSON, or with a family's own quotes.

Decides which literals are known, and whether a text ends inside of one. Names and calls are
evaluated nowhere. Knows no family.
"""

from __future__ import annotations

import math
import re
from typing import Any

from antiphon.text.tools.whole import Unfinished

MAX_DEPTH = 64
_SPACE = re.compile(r"\s*")
_NUMBER = re.compile(r"[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?")
_KEY = re.compile(r"[^\s:=,{}\[\]()\"'<>|]+")
# From behind a quote to the next one that is not escaped.
_STRINGS = {
    '"': re.compile(r'(?s)[^"\\]*(?:\\.[^"\\]*)*"'),
    "'": re.compile(r"(?s)[^'\\]*(?:\\.[^'\\]*)*'"),
    '"""': re.compile(r'(?s)[^\\]*?(?:\\.[^\\]*?)*"""'),
    "'''": re.compile(r"(?s)[^\\]*?(?:\\.[^\\]*?)*'''"),
}
_WORD = re.compile(r"\w+")
_WORDS = {"True": True, "False": False, "None": None, "true": True, "false": False, "null": None}
_ESCAPE = re.compile(
    r"(?s)\\(?:u([dD][89abAB][0-9a-fA-F]{2})\\u([dD][c-fC-F][0-9a-fA-F]{2})"
    r"|u([0-9a-fA-F]{4})|U([0-9a-fA-F]{8})|x([0-9a-fA-F]{2})|(.))"
)
_CONTROLS = {"n": "\n", "t": "\t", "r": "\r", "b": "\b", "f": "\f", "0": "\0", "\n": ""}
_QUOTES = ('"""', "'''", '"', "'")
_CLOSERS = {"{": "}", "[": "]", "(": ")"}


class Literals:
    """A reader over a text, at the place `at`.

    `quotes` are the family's own, inside of which nothing is escaped.

    Every method raises `Unfinished` where the text ends too early, and another `ValueError`
    where it is wrong.
    """

    def __init__(self, text: str, quotes: tuple[str, ...] = ()) -> None:
        self.text = text
        self.at = 0
        self._quotes = quotes

    def over(self) -> bool:
        """Whether only white space is left."""
        self._space()
        return self.at == len(self.text)

    def take(self, wanted: str) -> bool:
        """Whether this comes next; if so it is taken."""
        self._space()
        if self.text.startswith(wanted, self.at):
            self.at += len(wanted)
            return True
        return False

    def need(self, wanted: str) -> None:
        """Take what has to come next."""
        if not self.take(wanted):
            raise self._wrong(wanted)

    def match(self, pattern: re.Pattern[str]) -> str:
        """Take what has to come next, by its form."""
        self._space()
        found = pattern.match(self.text, self.at)
        if found is None:
            raise self._wrong()
        self.at = found.end()
        return found[0]

    def value(self, depth: int = 0) -> Any:
        """Take any value."""
        if depth > MAX_DEPTH:
            raise ValueError("too deep")
        if self.over():
            raise Unfinished
        for quote in (*self._quotes, *_QUOTES):
            if self.take(quote):
                return self._string(quote)
        if self.take("{"):
            return self.members("}", ":", depth)
        for opener in "[(":
            if self.take(opener):
                return self._list(_CLOSERS[opener], depth)
        if number := _NUMBER.match(self.text, self.at):
            self.at = number.end()
            return _number(number[0])
        word = self.match(_WORD)
        if word not in _WORDS:
            if self.over() and any(known.startswith(word) for known in _WORDS):
                raise Unfinished
            raise ValueError(word)
        return _WORDS[word]

    def members(self, closer: str, colon: str, depth: int = 0) -> dict[str, Any]:
        """Take `key: value, …` up to the closer."""
        found: dict[str, Any] = {}
        while not self.take(closer):
            key = self._key()
            self.need(colon)
            if key in found:
                raise ValueError(key)
            found[key] = self.value(depth + 1)
            if not self.take(","):
                self.need(closer)
                break
        return found

    def _list(self, closer: str, depth: int) -> list[Any]:
        found: list[Any] = []
        while not self.take(closer):
            found.append(self.value(depth + 1))
            if not self.take(","):
                self.need(closer)
                break
        return found

    def _key(self) -> str:
        for quote in (*self._quotes, *_QUOTES):
            if self.take(quote):
                return self._string(quote)
        return self.match(_KEY)

    def _string(self, quote: str) -> str:
        """The rest of a string whose quote has been taken."""
        start = self.at
        if quote in self._quotes:
            end = self.text.find(quote, start)
            if end < 0:
                raise Unfinished
            self.at = end + len(quote)
            return self.text[start:end]
        found = _STRINGS[quote].match(self.text, start)
        if found is None:
            raise Unfinished
        self.at = found.end()
        return _ESCAPE.sub(_unescaped, self.text[start : self.at - len(quote)])

    def _space(self) -> None:
        found = _SPACE.match(self.text, self.at)
        assert found is not None
        self.at = found.end()

    def _wrong(self, wanted: str = "") -> ValueError:
        rest = self.text[self.at :]
        return Unfinished() if wanted.startswith(rest) or not rest else ValueError(rest[:20])


def _number(text: str) -> int | float:
    try:
        return int(text)
    except ValueError:
        number = float(text)
    if not math.isfinite(number):
        raise ValueError(text)
    return number


def _unescaped(match: re.Match[str]) -> str:
    """One escape. What Python and JSON do not know stays as it is, as in Python."""
    high, low, *codes, single = match.groups()
    if high:
        pair = f"{chr(int(high, 16))}{chr(int(low, 16))}"
        return pair.encode("utf-16", "surrogatepass").decode("utf-16")
    if single is None:
        return chr(int(next(filter(None, codes)), 16))
    return _CONTROLS.get(single, single if single in "\\\"'/" else match[0])
