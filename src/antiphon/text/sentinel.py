"""Control tokens in a client's text stay text (contract I13).

Decides how such text gets through a template unseen: before rendering, each control token's
string becomes one private character, and afterwards that character marks where the string is
to be tokenised as plain text. Knows neither templates nor tokenisers.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from antiphon.engine.errors import PromptRejected

# Plane 16 is private use: no character there has a meaning. One character per distinct
# string, so that a template which trims or slices cannot cut a sentinel in two.
_FIRST, _LAST = 0x10_0000, 0x10_FFFD
_PRIVATE = f"[{chr(_FIRST)}-{chr(_LAST)}]"


@dataclass(frozen=True, slots=True)
class Segment:
    """A piece of a rendered prompt. `special` says whether control tokens in it count."""

    text: str
    special: bool


class Sentinels:
    """The strings to protect. Made once per model; `open` begins one rendering."""

    def __init__(self, protected: Iterable[str]) -> None:
        longest_first = sorted(set(filter(None, protected)), key=lambda text: (-len(text), text))
        self._pattern = re.compile("|".join([*map(re.escape, longest_first), _PRIVATE]))

    def open(self) -> Veil:
        """A fresh mapping between strings and private characters."""
        return Veil(self._pattern)


class Veil:
    """Hides protected strings in what goes into one rendering, and finds them in what comes out.

    A private character in the client's own text is hidden like a control token, so that it
    comes back unchanged.
    """

    def __init__(self, pattern: re.Pattern[str]) -> None:
        self._pattern = pattern
        self._characters: dict[str, str] = {}

    def hide(self, value: Any) -> Any:
        """The value with its strings protected: in lists and mappings (keys too), recursively."""
        if isinstance(value, str):
            return self._pattern.sub(self._character, value)
        if isinstance(value, Mapping):
            return {self.hide(key): self.hide(item) for key, item in value.items()}
        if isinstance(value, list | tuple):
            return [self.hide(item) for item in value]
        return value

    def segments(self, rendered: str) -> tuple[Segment, ...]:
        """The rendered text, split so that every protected string is a segment of its own."""
        if not self._characters:
            return (Segment(rendered, True),) if rendered else ()
        hidden = {character: text for text, character in self._characters.items()}
        found: list[Segment] = []
        plain = ""
        for piece in re.split(f"([{''.join(hidden)}])", rendered):
            text = hidden.get(piece, piece)
            if text == piece or (len(text) == 1 and _FIRST <= ord(text) <= _LAST):
                plain += text
                continue
            if plain:
                found.append(Segment(plain, True))
            found.append(Segment(text, False))
            plain = ""
        if plain:
            found.append(Segment(plain, True))
        return tuple(found)

    def _character(self, match: re.Match[str]) -> str:
        text = match.group()
        if text not in self._characters:
            if len(self._characters) > _LAST - _FIRST:
                raise PromptRejected("The input has too many private-use characters.")
            self._characters[text] = chr(_FIRST + len(self._characters))
        return self._characters[text]
