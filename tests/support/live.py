"""A real server on a free port, in the event loop of the test."""

from __future__ import annotations

import asyncio
import contextlib
import json
import socket
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass
from typing import Any

import httpx2
from openai import AsyncOpenAI
from starlette.applications import Starlette

from antiphon.app import Server, create_app
from antiphon.config import Settings
from antiphon.core.responses import ResponsesService
from antiphon.engine.protocol import Engine
from antiphon.engines.scripted import ScriptedEngine
from antiphon.store.base import Store
from tests.support.streams import Stream, parse


@dataclass
class Live:
    """A running server: its address, a raw HTTP client, and what is inside."""

    base: str
    http: httpx2.AsyncClient
    service: ResponsesService
    port: int
    cleanup: contextlib.AsyncExitStack

    def sdk(self, key: str = "none") -> AsyncOpenAI:
        """An official client, without retries; closed with the server."""
        client = AsyncOpenAI(base_url=f"{self.base}/v1", api_key=key, max_retries=0)
        self.cleanup.push_async_callback(client.close)
        return client

    async def create(
        self, body: Mapping[str, Any], *, headers: Mapping[str, str] | None = None
    ) -> httpx2.Response:
        """POST /v1/responses."""
        return await self.http.post("/v1/responses", json=body, headers=headers)

    async def stream(
        self, body: Mapping[str, Any], *, headers: Mapping[str, str] | None = None
    ) -> Stream:
        """POST /v1/responses with `stream: true`; every frame is checked."""
        answer = await self.http.post(
            "/v1/responses", json={**body, "stream": True}, headers=headers
        )
        assert answer.status_code == 200, answer.text
        assert answer.headers["content-type"].startswith("text/event-stream")
        return parse(answer.content)

    async def raw(self, data: bytes) -> bytes:
        """Send bytes as they are and read until the server closes."""
        reader, writer = await asyncio.open_connection("127.0.0.1", self.port)
        writer.write(data)
        answer = await reader.read()
        writer.close()
        return answer


class _Server(Server):
    """Ends at once when it is told to, instead of looking ten times a second."""

    def __init__(self, app: Starlette, settings: Settings, listener: socket.socket) -> None:
        super().__init__(app, settings, listener)
        self.stop = asyncio.Event()

    async def main_loop(self) -> None:
        await self.on_tick(0)
        await self.stop.wait()


@contextlib.asynccontextmanager
async def running(
    engine: Engine, settings: Settings | None = None, store: Store | None = None
) -> AsyncIterator[Live]:
    """Serve an engine until the block ends; the engine is started and closed here."""
    settings = settings or Settings()
    # Naming the protocol makes asyncio set TCP_NODELAY on what is accepted.
    listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    listener.bind(("127.0.0.1", 0))
    await engine.start()
    app = create_app(settings, engine, store)
    server = _Server(app, settings, listener)
    task = asyncio.create_task(server._serve(sockets=[listener]))
    port = listener.getsockname()[1]
    base = f"http://127.0.0.1:{port}{settings.api_prefix}"
    try:
        async with contextlib.AsyncExitStack() as cleanup:
            http = httpx2.AsyncClient(base_url=base, timeout=30)
            await cleanup.enter_async_context(http)
            while not server.started and not task.done():
                await asyncio.wait({task}, timeout=0.001)
            yield Live(base, http, app.state.service, port, cleanup)
    finally:
        server.stop.set()
        await task
        listener.close()
        await engine.close()


@contextlib.asynccontextmanager
async def scripted(
    *answers: Mapping[str, Any],
    settings: Settings | None = None,
    store: Store | None = None,
    **script: Any,
) -> AsyncIterator[tuple[Live, ScriptedEngine]]:
    """Serve a script. The model is called `scripted`."""
    content: dict[str, Any] = {"answers": list(answers)} if answers else {}
    engine = ScriptedEngine({**content, **script})
    async with running(engine, settings, store) as live:
        yield live, engine


def ask(text: Any = "hi", /, **more: Any) -> dict[str, Any]:
    """A request body for the scripted model; `text` is its input."""
    return {"model": "scripted", "input": text, **more}


def error_of(answer: httpx2.Response) -> dict[str, Any]:
    """The error of an answer, whose envelope is checked (ERR of the bug cases)."""
    assert answer.headers["content-type"] == "application/json", answer.text
    body = json.loads(answer.content)
    assert set(body) == {"error"}
    error: dict[str, Any] = body["error"]
    assert set(error) == {"message", "type", "param", "code"}
    assert isinstance(error["message"], str)
    assert isinstance(error["type"], str)
    return error
