"""Public bug reports, area I: prompts and bodies that are too large."""

from __future__ import annotations

import asyncio
import contextlib
import socket

import psutil
import pytest

from antiphon.config import Settings
from tests.support.bodies import OK
from tests.support.cases import case, refused
from tests.support.live import Live, ask

pytestmark = pytest.mark.anyio

MIB = 1 << 20


@pytest.mark.parametrize("stream", [False, True])
async def test_a_prompt_larger_than_the_window_is_refused(stream: bool) -> None:
    """B126: 400 context_length_exceeded with both numbers, and nothing is cut silently."""
    async with case(OK, context_window=1024) as (live, engine):
        answer = await live.create(ask("word " * 5000, max_output_tokens=16, stream=stream))
        message = refused(answer, "input", code="context_length_exceeded")
        assert "1024" in message
        assert "6253" in message
        assert engine.calls == []


async def post_slowly(live: Live, head: str, pieces: int, piece: bytes) -> bytes:
    """Send a body in pieces until it is all sent or the server closes; return the answer.

    Done on the bare socket, so that an answer that came before the close is never lost.
    """
    loop = asyncio.get_running_loop()
    with socket.create_connection(("127.0.0.1", live.port)) as client:
        client.setblocking(False)
        start = f"POST /v1/responses HTTP/1.1\r\nHost: x\r\n{head}\r\n\r\n"
        with contextlib.suppress(ConnectionError):
            await loop.sock_sendall(client, start.encode())
            for _ in range(pieces):
                await loop.sock_sendall(client, piece)
        answer = b""
        with contextlib.suppress(ConnectionError):
            while received := await loop.sock_recv(client, 65536):
                answer += received
        return answer


@pytest.mark.parametrize("chunked", [False, True])
async def test_a_huge_body_is_refused_while_it_is_read(chunked: bool) -> None:
    """B129 (C24): 413 at the limit, memory stays, and other requests are answered meanwhile."""
    data = b" " * MIB
    head = "Content-Type: application/json\r\nContent-Length: 209715200"
    piece = data
    if chunked:
        head = "Content-Type: application/json\r\nTransfer-Encoding: chunked"
        piece = b"%x\r\n%b\r\n" % (MIB, data)
    limit = 16 * MIB
    async with case(OK, settings=Settings(max_body_bytes=limit)) as (live, _):
        await live.create(ask())
        process = psutil.Process()
        before = process.memory_info().rss
        huge = asyncio.create_task(post_slowly(live, head, 200, piece))
        assert (await live.create(ask())).status_code == 200
        answer = await huge
        assert answer.startswith(b"HTTP/1.1 413 ")
        assert b'"code":"request_too_large"' in answer
        assert b"application/json" in answer
        assert process.memory_info().rss - before < 2 * limit


@pytest.mark.parametrize("extra", [0, 1])
async def test_the_limit_of_a_body_is_exact(extra: int) -> None:
    """B129 (C24): a body of the limit's size is read, one byte more is 413."""
    body = b'{"model":"scripted","input":"hi"}'
    async with case(OK, settings=Settings(max_body_bytes=100)) as (live, _):
        answer = await live.http.post(
            "/v1/responses",
            content=body.ljust(100 + extra),
            headers={"Content-Type": "application/json"},
        )
        if extra:
            refused(answer, None, status=413, code="request_too_large")
        else:
            assert answer.status_code == 200
