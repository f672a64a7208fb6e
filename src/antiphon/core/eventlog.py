"""The events of a run as bytes, for readers of different speed.

Decides how much is held and what happens to a reader that is too slow: the log never waits
for anybody and never holds more than its limit; a reader whose next event is gone is told so
(contract O14). Knows no event type.
"""

from __future__ import annotations

import asyncio
from collections import deque

CHUNK = 65_536


class Lagged(Exception):
    """The reader's next event is no longer held."""


class EventLog:
    """Framed events in order. `limit` is in bytes; what came last, together, is always held."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._frames: deque[bytes] = deque()
        self._first = 0
        self._bytes = 0
        self._readers: set[Reader] = set()
        self.closed = False

    def extend(self, frames: list[bytes]) -> None:
        """Append events that are ready together and wake every reader once."""
        self._frames.extend(frames)
        self._bytes += sum(map(len, frames))
        # Nobody had a chance to read what came just now, however much it is.
        while self._bytes > self._limit and len(self._frames) > len(frames):
            self._bytes -= len(self._frames.popleft())
            self._first += 1
        for reader in tuple(self._readers):
            reader._notify(self._first)

    def close(self) -> None:
        """No further events will come."""
        self.closed = True
        for reader in tuple(self._readers):
            reader._wake()

    def reader(self, after: int = -1) -> Reader:
        """A reader of the events with numbers greater than `after`."""
        reader = Reader(self, after + 1)
        self._readers.add(reader)
        return reader


class Reader:
    """A position in a log. `lagged` is set, and may be awaited, once events were missed."""

    def __init__(self, log: EventLog, position: int) -> None:
        self._log = log
        self._position = position
        self._ready = asyncio.Event()
        self._ready.set()
        self._closed = False
        self.lagged = asyncio.Event()

    async def read(self) -> bytes | None:
        """What is ready now, at most about 64 KiB, waiting for the first event of it.

        Returns None at the end of the log and after `close`, and b"" after `nudge`.

        Raises:
            Lagged: the next event is no longer held.
        """
        if not self._ready.is_set():
            await self._ready.wait()
        if self._closed:
            return None
        if self.lagged.is_set():
            raise Lagged
        log = self._log
        start = self._position - log._first
        available = len(log._frames) - start
        if available <= 0:
            if log.closed:
                return None
            self._ready.clear()
            return b""
        if available == 1:
            chunk, taken = log._frames[start], 1
        else:
            parts: list[bytes] = []
            size = 0
            while len(parts) < available and size < CHUNK:
                frame = log._frames[start + len(parts)]
                parts.append(frame)
                size += len(frame)
            chunk, taken = b"".join(parts), len(parts)
        self._position += taken
        if taken == available and not log.closed:
            self._ready.clear()
        return chunk

    def nudge(self) -> None:
        """Make a waiting `read` return."""
        self._ready.set()

    def close(self) -> None:
        """Leave the log. Synchronous and idempotent; a waiting `read` returns None."""
        self._closed = True
        self._log._readers.discard(self)
        self._ready.set()

    def _notify(self, first: int) -> None:
        if self._position < first:
            self.lagged.set()
        self._ready.set()

    _wake = nudge
