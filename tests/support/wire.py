"""One TCP connection, written and read by hand.

For what an HTTP client hides: leaving in the middle, never reading, several requests on one
connection, bodies without an end.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import re
from collections.abc import AsyncIterator, Mapping
from typing import Any

from antiphon.core.run import Run
from antiphon.engines.scripted import ScriptedEngine
from antiphon.http.auth import ANONYMOUS
from tests.support.live import Live

PATIENCE = 20.0
LIMIT = 64 * 1024 * 1024


class Wire:
    """Sends requests as bytes; reads up to a marker or to the end."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader = reader
        self.writer = writer

    async def send(
        self,
        body: Any,
        *,
        path: str = "/v1/responses",
        headers: Mapping[str, str] | None = None,
        version: str = "1.1",
    ) -> None:
        """POST a JSON body."""
        data = body if isinstance(body, bytes) else json.dumps(body).encode()
        lines = [f"POST {path} HTTP/{version}", "Host: localhost", f"Content-Length: {len(data)}"]
        given = {"Content-Type": "application/json", **(headers or {})}
        lines += [f"{name}: {value}" for name, value in given.items()]
        self.writer.write("\r\n".join(lines).encode() + b"\r\n\r\n" + data)
        await self.writer.drain()

    async def until(self, marker: bytes) -> bytes:
        """What comes, up to and with the marker."""
        async with asyncio.timeout(PATIENCE):
            return await self.reader.readuntil(marker)

    async def rest(self) -> bytes:
        """What comes until the server closes."""
        async with asyncio.timeout(PATIENCE):
            return await self.reader.read()

    async def answer(self) -> tuple[int, dict[str, str], bytes]:
        """Status, headers with lower-case names, and body of an answer with a known length."""
        start, *lines = (await self.until(b"\r\n\r\n")).decode("latin-1").split("\r\n")[:-2]
        headers = {}
        for line in lines:
            name, _, value = line.partition(":")
            headers[name.lower()] = value.strip()
        body = await self.reader.readexactly(int(headers["content-length"]))
        return int(start.split()[1]), headers, body

    async def opened(self) -> str:
        """Read `response.created` and return the id of the response."""
        head = await self.until(b"event: response.in_progress\n")
        found = re.search(rb'"id":"(resp_[0-9a-f]+)"', head)
        assert found is not None, head
        return found[1].decode()

    def abort(self) -> None:
        """Leave without a word."""
        self.writer.transport.abort()


@contextlib.asynccontextmanager
async def connected(live: Live, *, limit: int = LIMIT) -> AsyncIterator[Wire]:
    """A connection that is closed at the end; at most `2 * limit` bytes are read ahead."""
    reader, writer = await asyncio.open_connection("127.0.0.1", live.port, limit=limit)
    wire = Wire(reader, writer)
    try:
        yield wire
    finally:
        wire.abort()


async def ended(live: Live, id: str, owner: str = ANONYMOUS) -> None:
    """Wait until a run is over and written."""
    run = live.service.runs.get(owner, id)
    if run is not None:
        async with asyncio.timeout(PATIENCE):
            await run.done.wait()


async def begun(live: Live, engine: ScriptedEngine, calls: int = 1) -> Run:
    """Wait until the engine works on so many requests; return the run of the newest.

    Each look is a request of its own, so that the server gets its turn.
    """
    async with asyncio.timeout(PATIENCE):
        while len(engine.calls) < calls:
            await live.http.get("/health")
        await engine.calls[calls - 1].begun.wait()
    return list(live.service.runs._runs.values())[-1]


async def happens(event: asyncio.Event) -> None:
    """Wait for an event of the engine."""
    async with asyncio.timeout(PATIENCE):
        await event.wait()
