"""`{"name": …, "parameters": {…}}` as the whole answer: Llama 3.

Decides that a JSON object is a call only where an answer begins, or behind
`<|python_tag|>`, and that several are separated by `;` or white space.
"""

from __future__ import annotations

from antiphon.text.tools.base import Declared
from antiphon.text.tools.jsoncall import JsonCall, JsonCallReader

TAG = "<|python_tag|>"
_BETWEEN = " \t\r\n;"


class Llama3:
    """The dialect of bare JSON."""

    name = "llama3"
    openers = (TAG,)
    leading = ("{",)
    skip: tuple[str, ...] = ()
    inner: tuple[str, ...] = ()

    def read(self, opener: str, declared: Declared) -> Llama3Reader:
        """A reader for the text behind the tag, or from the brace on."""
        return Llama3Reader(declared)


class Llama3Reader(JsonCallReader):
    """Reads objects for as long as they follow each other."""

    def _between(self, character: str) -> int:
        if character in _BETWEEN:
            return 1
        if character == "{":
            self._call = JsonCall(self._declared)
        else:
            self.done, self.broken = self._calls > 0, not self._calls
        return 0
