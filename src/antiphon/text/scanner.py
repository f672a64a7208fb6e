"""Finds markers in a stream of text, holding back what may turn out to be one.

Decides where a marker stands, however the stream is split. It knows no meaning: which
markers matter at the moment is the caller's business. Nothing is lost at the end.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache


@dataclass(frozen=True, slots=True)
class Found:
    """A marker in a text: where it starts, and which one it is."""

    at: int
    marker: str


def find(text: str, markers: Sequence[str], start: int = 0) -> Found | None:
    """The earliest marker from `start` on; of several at one place, the longest."""
    if not markers:
        return None
    found = _compiled(tuple(markers)).pattern.search(text, start)
    return Found(found.start(), found[0]) if found else None


def held(text: str, markers: Sequence[str]) -> int:
    """How many characters at the end of `text` may be the beginning of a marker."""
    if not markers:
        return 0
    compiled = _compiled(tuple(markers))
    for at in range(max(0, len(text) - compiled.longest + 1), len(text)):
        if text[at] in compiled.firsts and any(
            len(marker) > len(text) - at and marker.startswith(text[at:]) for marker in markers
        ):
            return len(text) - at
    return 0


@dataclass(frozen=True, slots=True)
class _Compiled:
    """Markers in the form that is quick to look for."""

    pattern: re.Pattern[str]
    firsts: frozenset[str]
    longest: int


@lru_cache(maxsize=256)
def _compiled(markers: tuple[str, ...]) -> _Compiled:
    longest_first = sorted(markers, key=len, reverse=True)
    return _Compiled(
        re.compile("|".join(map(re.escape, longest_first))),
        frozenset(marker[0] for marker in markers),
        len(longest_first[0]),
    )
