"""Stop strings in a stream of text.

Decides where text ends because of a stop string, also when it is split over pieces. Knows
nothing of engines or tokens.
"""

from __future__ import annotations

from collections.abc import Sequence

from antiphon.text import scanner


class StopFilter:
    """Passes text on, holding back whatever may turn out to be the start of a stop string."""

    def __init__(self, stops: Sequence[str]) -> None:
        self._stops = tuple(stops)
        self._held = ""
        self.stopped = False

    def feed(self, piece: str) -> str:
        """The text that is safe to show now. After a stop string there is none."""
        if self.stopped:
            return ""
        text = self._held + piece
        if found := scanner.find(text, self._stops):
            self.stopped = True
            self._held = ""
            return text[: found.at]
        keep = scanner.held(text, self._stops)
        self._held = text[len(text) - keep :]
        return text[: len(text) - keep]

    def end(self) -> str:
        """What was held back, once no more text can come."""
        held, self._held = self._held, ""
        return held
