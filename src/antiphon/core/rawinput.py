"""The input of a custom tool, taken out of the JSON that carries it, piece by piece.

Decides nothing: engines say `{"input": "…"}`, clients of custom tools want the bare text.
"""

from __future__ import annotations

import json
import re

_HEAD = re.compile(r'\s*\{\s*"input"\s*:\s*"')
# As many whole characters as there are: half an escape, or half a pair, waits for the rest.
_WHOLE = re.compile(
    r"""(?:[^"\\]|\\["\\/bfnrt]|\\u(?![dD][89abAB])[0-9a-fA-F]{4}"""
    r"|\\u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2})*"
)


class RawInput:
    """Fed with JSON text, gives the text of `input` as far as it is known."""

    def __init__(self) -> None:
        self._json = ""
        self._shown = 0
        self._start: int | None = None
        self._ended = False

    def feed(self, piece: str) -> str:
        """What the next piece adds to the input."""
        self._json += piece
        if self._start is None:
            head = _HEAD.match(self._json)
            if head is None:
                return ""
            self._start = self._shown = head.end()
        if self._ended:
            return ""
        whole = _WHOLE.match(self._json, self._shown)
        assert whole is not None
        self._shown = whole.end()
        self._ended = self._json[self._shown : self._shown + 1] == '"'
        decoded: str = json.loads(f'"{whole[0]}"', strict=False)
        return decoded

    def whole(self) -> str:
        """The rest, when all JSON is known and the input could not be told as it came."""
        if self._start is not None:
            return ""
        try:
            value = json.loads(self._json or "{}")
        except ValueError:
            return self._json
        inner = value.get("input") if isinstance(value, dict) else None
        return inner if isinstance(inner, str) else self._json
