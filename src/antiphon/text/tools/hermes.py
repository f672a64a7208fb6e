"""`<tool_call>{"name": …, "arguments": …}</tool_call>`: Hermes, Qwen, SmolLM and many others.

Decides only the markers. Several objects in one section are several calls; a missing end
marker is forgiven once the object is complete.
"""

from __future__ import annotations

from antiphon.text.tools.base import Declared
from antiphon.text.tools.jsoncall import ListedReader

OPEN, CLOSE = "<tool_call>", "</tool_call>"


class Hermes:
    """The dialect, which is also ours for models that know none."""

    name = "hermes"
    openers = (OPEN,)
    leading: tuple[str, ...] = ()
    skip: tuple[str, ...] = ()
    inner = (CLOSE,)

    def read(self, opener: str, declared: Declared) -> ListedReader:
        """A reader for the text behind `<tool_call>`."""
        return ListedReader(declared, (CLOSE,))
