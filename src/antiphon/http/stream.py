"""How a client waits for a run: until its end, or event by event.

Decides how a client that left is noticed (contract O12-O14). The stream is an ASGI app of its
own: it never awaits on its way out, so that a disconnect cannot be lost in a cancelled scope.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping
from typing import Literal

from starlette.requests import Request
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from antiphon import sse
from antiphon.core.eventlog import Lagged, Reader
from antiphon.core.run import Run

log = logging.getLogger("antiphon.http")


async def disconnected(receive: Receive) -> None:
    """Return when the client is gone."""
    while (await receive())["type"] != "http.disconnect":
        pass


async def wait_or_leave(run: Run, request: Request) -> bool:
    """Wait for a run's end on behalf of a client. False when the client left first (O13)."""
    run.attach()
    done = asyncio.create_task(run.done.wait())
    gone = asyncio.create_task(disconnected(request.receive))
    try:
        await asyncio.wait({done, gone}, return_when=asyncio.FIRST_COMPLETED)
        return run.done.is_set()
    finally:
        done.cancel()
        gone.cancel()
        run.detach()


class EventStream(Response):
    """The events of a run as they come, ended by `[DONE]`.

    After `interval` seconds of silence a keep-alive goes out, as a comment or as an event
    (O12, P9); it takes no sequence number. An interval of 0 sends none.
    """

    def __init__(
        self,
        run: Run,
        headers: Mapping[str, str],
        *,
        interval: float,
        keep_alive: Literal["comment", "event"],
    ) -> None:
        super().__init__(None, 200, {**sse.HEADERS, **headers})
        del self.headers["content-length"]
        self._run = run
        self._interval = interval
        self._keep_alive = sse.KEEPALIVE if keep_alive == "event" else sse.COMMENT
        self._written = 0.0

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        run = self._run
        reader = run.subscribe()
        run.attach()
        writer = asyncio.create_task(self._write(reader, send))
        gone = asyncio.create_task(disconnected(receive))
        lagged = asyncio.create_task(reader.lagged.wait())
        pulse = _Pulse(self, reader) if self._interval else None
        try:
            await asyncio.wait({writer, gone, lagged}, return_when=asyncio.FIRST_COMPLETED)
            if writer.done():
                writer.result()
            elif lagged.done():
                log.warning("a reader of %s is too slow and was cut off", run.id)
        finally:
            run.detach()
            reader.close()
            if pulse is not None:
                pulse.stop()
            for task in (writer, gone, lagged):
                task.cancel()

    async def _write(self, reader: Reader, send: Send) -> None:
        now = asyncio.get_running_loop().time
        self._written = now()
        await send({"type": "http.response.start", "status": 200, "headers": self.raw_headers})
        while True:
            try:
                chunk = await reader.read()
            except Lagged:
                return
            if chunk is None:
                break
            await send(
                {
                    "type": "http.response.body",
                    "body": chunk or self._keep_alive,
                    "more_body": True,
                }
            )
            self._written = now()
        await send({"type": "http.response.body", "body": sse.DONE, "more_body": False})


class _Pulse:
    """Wakes the reader after an interval without a write; costs nothing per event."""

    def __init__(self, stream: EventStream, reader: Reader) -> None:
        self._stream = stream
        self._reader = reader
        self._loop = asyncio.get_running_loop()
        self._handle = self._loop.call_later(stream._interval, self._fire)

    def stop(self) -> None:
        self._handle.cancel()

    def _fire(self) -> None:
        rest = self._stream._written + self._stream._interval - self._loop.time()
        if rest <= 0:
            self._reader.nudge()
            rest = self._stream._interval
        self._handle = self._loop.call_later(rest, self._fire)
