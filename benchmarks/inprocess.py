"""An app served in this process, for measurements that look inside."""

from __future__ import annotations

import asyncio
import contextlib
import socket
from collections.abc import AsyncIterator

from starlette.applications import Starlette

from antiphon.app import Server
from antiphon.config import Settings
from antiphon.engine.protocol import Engine


@contextlib.asynccontextmanager
async def serving(app: Starlette, engine: Engine) -> AsyncIterator[str]:
    """The address of the app, for as long as the block lasts."""
    listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    listener.bind(("127.0.0.1", 0))
    await engine.start()
    server = Server(app, Settings(), listener)
    with contextlib.redirect_stdout(None):
        task = asyncio.create_task(server._serve(sockets=[listener]))
        while not server.started:  # noqa: ASYNC110 - uvicorn has no event for it
            await asyncio.sleep(0.005)
    try:
        yield f"http://127.0.0.1:{listener.getsockname()[1]}"
    finally:
        server.should_exit = True
        await task
        await engine.close()
