"""The least that could do it: a Starlette loop that writes the same events."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncIterator

import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import StreamingResponse
from starlette.routing import Route

# As long as the events of Antiphon, so that both write the same number of bytes.
FRAME = (
    b'event: response.output_text.delta\ndata: {"sequence_number":123,"item_id":"msg_'
    + b"0" * 32
    + b'","output_index":0,"content_index":0,"type":"response.output_text.delta",'
    b'"delta":"hello ","logprobs":[]}\n\n'
)


async def events(request: Request) -> StreamingResponse:
    """As many events as asked for, with a pause before each if there is to be one."""
    body = await request.json()
    count, pause = body["max_output_tokens"], body["pause"]

    async def write() -> AsyncIterator[bytes]:
        for _ in range(count):
            if pause:
                await asyncio.sleep(pause)
            yield FRAME

    return StreamingResponse(write(), media_type="text/event-stream")


class Announced(uvicorn.Server):
    """Says when it listens."""

    async def startup(self, sockets: object = None) -> None:
        await super().startup()
        print("bare is ready", flush=True)


if __name__ == "__main__":
    app = Starlette(routes=[Route("/v1/responses", events, methods=["POST"])])
    Announced(
        uvicorn.Config(
            app, port=int(sys.argv[1]), log_config=None, access_log=False, lifespan="off"
        )
    ).run()
