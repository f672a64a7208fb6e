"""The least that could do it: a Starlette loop that writes recorded events.

Run as a process of its own; prints its address when it listens. The same uvicorn with the same
event loop and the same parser as Antiphon.
"""

from __future__ import annotations

import asyncio
import functools
import socket
from collections.abc import AsyncIterator
from pathlib import Path

import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import StreamingResponse
from starlette.routing import Route


@functools.cache
def recorded(path: str) -> list[tuple[bool, bytes]]:
    """The events of a stream that was saved to a file, and which of them are deltas."""
    frames = Path(path).read_bytes().split(b"\n\n")[:-1]
    return [(b".delta\n" in frame, frame + b"\n\n") for frame in frames]


async def replay(request: Request) -> StreamingResponse:
    """Write the events of the file `recorded`, with a `pause` in seconds before each delta."""
    body = await request.json()
    pause = body["pause"]

    async def write() -> AsyncIterator[bytes]:
        for delta, frame in recorded(body["recorded"]):
            if delta and pause:
                await asyncio.sleep(pause)
            yield frame

    return StreamingResponse(write(), media_type="text/event-stream")


class Announced(uvicorn.Server):
    """Says when and where it listens."""

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        host, port = self.servers[0].sockets[0].getsockname()
        print(f"bare is ready: http://{host}:{port}", flush=True)


if __name__ == "__main__":
    app = Starlette(routes=[Route("/v1/responses", replay, methods=["POST"])])
    Announced(uvicorn.Config(app, port=0, log_config=None, access_log=False, lifespan="off")).run()
