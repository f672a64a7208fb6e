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
    """Framed events in order. `limit` is in bytes; the newest event is always held."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._frames: deque[bytes] = deque()
        self._first = 0
        self._bytes = 0
        self._trimming = False
        self._readers: set[Reader] = set()
        self.closed = False

    def append(self, frame: bytes) -> None:
        """Append an event and wake every reader. Must be called inside an event loop."""
        self._frames.append(frame)
        self._bytes += len(frame)
        for reader in self._readers:
            reader._wake()
        if self._bytes > self._limit and not self._trimming:
            # Later, when the readers that keep up have taken what came in one go.
            self._trimming = True
            asyncio.get_running_loop().call_soon(self._trim)

    def _trim(self) -> None:
        self._trimming = False
        while self._bytes > self._limit and len(self._frames) > 1:
            self._bytes -= len(self._frames.popleft())
            self._first += 1
        for reader in self._readers:
            if reader._position < self._first:
                reader.lagged.set()
                reader._wake()

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
        self._waiter: asyncio.Future[None] | None = None
        self._nudged = False
        self._closed = False
        self.lagged = asyncio.Event()

    async def read(self) -> bytes | None:
        """What is ready now, at most about 64 KiB, waiting for the first event of it.

        Returns None at the end of the log and after `close`, and b"" after `nudge`.

        Raises:
            Lagged: the next event is no longer held.
        """
        log = self._log
        while not self._closed:
            start = self._position - log._first
            if start < 0:
                raise Lagged
            available = len(log._frames) - start
            if available > 0:
                return self._take(start, available)
            if log.closed:
                return None
            if self._nudged:
                self._nudged = False
                return b""
            # A bare future, since an asyncio.Event costs twice as much per event.
            self._waiter = asyncio.get_running_loop().create_future()
            await self._waiter
        return None

    def nudge(self) -> None:
        """Make a waiting `read` return."""
        self._nudged = True
        self._wake()

    def close(self) -> None:
        """Leave the log. Synchronous and idempotent; a waiting `read` returns None."""
        self._closed = True
        self._log._readers.discard(self)
        self._wake()

    def _take(self, start: int, available: int) -> bytes:
        frames = self._log._frames
        if available == 1:
            self._position += 1
            return frames[start]
        parts: list[bytes] = []
        size = 0
        while len(parts) < available and size < CHUNK:
            frame = frames[start + len(parts)]
            parts.append(frame)
            size += len(frame)
        self._position += len(parts)
        return b"".join(parts)

    def _wake(self) -> None:
        waiter, self._waiter = self._waiter, None
        if waiter is not None and not waiter.done():
            waiter.set_result(None)
