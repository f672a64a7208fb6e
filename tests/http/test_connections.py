"""Silent, slow and vanished clients."""

from __future__ import annotations

import asyncio
import re
import socket

import pytest

from antiphon.config import Settings
from tests.support.bodies import OK, text_of
from tests.support.live import ask, scripted
from tests.support.streams import parse
from tests.support.wire import PATIENCE, begun, connected, ended, happens

pytestmark = pytest.mark.anyio


def without_chunks(data: bytes) -> bytes:
    """A body whose transfer chunks are whole frames."""
    return re.sub(rb"(?:^|\r\n)[0-9a-f]+\r\n(?:\r\n)?", b"", data)


@pytest.mark.parametrize(
    ("settings", "mark"),
    [
        (Settings(keep_alive_secs=1), b": keep-alive\n\n"),
        (
            Settings(keep_alive_secs=1, compat="openai"),
            b'event: keepalive\ndata: {"type":"keepalive"}\n\n',
        ),
        (
            Settings(keep_alive_secs=1, keep_alive="event"),
            b'event: keepalive\ndata: {"type":"keepalive"}\n\n',
        ),
    ],
    ids=["comment", "openai", "event"],
)
async def test_silence_is_broken_by_a_keep_alive(settings: Settings, mark: bytes) -> None:
    """O12, P9: as a comment or as an event; it takes no sequence number."""
    script = {"wait_for": "gate", **OK}
    async with scripted(script, settings=settings) as (live, engine), connected(live) as wire:
        await wire.send(ask(stream=True), headers={"Connection": "close"})
        await wire.until(b"\r\n\r\n")
        before = await wire.until(mark)
        engine.open_gate("gate")
        stream = parse(without_chunks(before + await wire.rest()))
        assert stream.text == "ok"


@pytest.mark.parametrize("stream", [True, False])
async def test_a_client_that_leaves_ends_its_generation(stream: bool) -> None:
    """O13: the engine stops, the slot is free, and the stored status is cancelled."""
    script = {"chunks": ["again "], "infinite": True, "ms_per_token": 1}
    async with scripted(script, OK, slots=1) as (live, engine):
        async with connected(live) as wire:
            await wire.send(ask(stream=stream))
            run = await begun(live, engine)
        await happens(engine.calls[0].ended)
        assert engine.calls[0].cancelled
        await ended(live, run.id)
        stored = (await live.http.get(f"/v1/responses/{run.id}")).json()
        assert stored["status"] == "cancelled"
        assert (await live.create(ask())).status_code == 200


async def test_a_plain_client_that_leaves_the_queue_never_reaches_the_engine() -> None:
    """O13: without a stream as with one."""
    async with scripted({"wait_for": "gate", **OK}, slots=1) as (live, engine):
        async with connected(live) as first:
            await first.send(ask("first"))
            await begun(live, engine)
            async with connected(live) as second:
                await second.send(ask("second", stream=True))
                id = await second.opened()
                async with connected(live) as third:
                    await third.send(ask("third"))
                    async with asyncio.timeout(PATIENCE):
                        while engine.slots.waiting < 2:
                            await live.http.get("/health")
                    run = list(live.service.runs._runs.values())[-1]
                await ended(live, run.id)
                assert engine.slots.waiting == 1
            await ended(live, id)
            engine.open_gate("gate")
            assert (await first.answer())[0] == 200
        assert len(engine.calls) == 1


@pytest.mark.parametrize("stream", [True, False])
async def test_a_client_that_only_closes_its_sending_side_is_gone(stream: bool) -> None:
    """O13: HTTP/1.1 servers cannot tell the two apart; half-closed is closed."""
    async with scripted({"wait_for": "never"}, OK) as (live, engine), connected(live) as wire:
        await wire.send(ask(stream=stream))
        await begun(live, engine)
        wire.writer.write_eof()
        await happens(engine.calls[0].ended)
        assert engine.calls[0].cancelled


async def test_a_reader_that_never_reads_is_cut_off() -> None:
    """O14: its run is cancelled after a bounded amount, and other streams go on."""
    mute = {"chunks": ["x" * 1000], "infinite": True}
    settings = Settings(stream_buffer_bytes=65536)
    async with scripted(mute, OK, settings=settings, slots=2) as (live, engine):
        client = socket.socket()
        client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        client.connect(("127.0.0.1", live.port))
        with client:
            body = b'{"model":"scripted","input":"x","stream":true}'
            head = b"POST /v1/responses HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n"
            client.sendall(head + b"Content-Length: %d\r\n\r\n" % len(body) + body)
            run = await begun(live, engine)
            assert (await live.stream(ask())).text == "ok"
            await happens(engine.calls[0].ended)
            assert engine.calls[0].cancelled
            await ended(live, run.id)
        stored = (await live.http.get(f"/v1/responses/{run.id}")).json()
        assert stored["status"] == "cancelled"
        # The kernel's own buffers take a few megabytes before the server notices anything.
        assert len(text_of(stored)) < 32_000_000


async def test_a_reader_that_keeps_up_gets_everything() -> None:
    """O14: neither a long stream nor the events of its end, which repeat the text, cut it off."""
    script = {"chunks": ["y" * 500] * 400}
    async with scripted(script, settings=Settings(stream_buffer_bytes=4096)) as (live, _):
        assert len((await live.stream(ask())).text) == 200_000


async def test_clients_that_come_and_go_leave_nothing_behind() -> None:
    """O13: every slot and every run is given back."""
    async with scripted({"chunks": ["z "], "infinite": True, "ms_per_token": 1}, slots=2) as (
        live,
        engine,
    ):
        for number in range(20):
            async with connected(live) as wire:
                await wire.send(ask(stream=number % 2 == 0))
                run = await begun(live, engine, number + 1)
            await ended(live, run.id)
        await live.service.runs.drain(PATIENCE)
        assert (engine.slots.running, engine.slots.waiting, len(live.service.runs)) == (0, 0, 0)
