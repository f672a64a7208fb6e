"""The embedded model under load: many streams, and clients that leave whenever they like."""

from __future__ import annotations

import asyncio
import random
from typing import Any

import psutil
import pytest

from antiphon.app import engine_of
from antiphon.config import Settings
from antiphon.engines import models
from antiphon.engines.llamacpp.engine import LlamaEngine
from tests.support.live import Live, running

STREAMS = 32
DISCONNECTS = 1000
AT_ONCE = 16
SETTINGS = Settings(queue_limit=64)


def _engine() -> LlamaEngine:
    try:
        models.find_default()
    except models.ModelError as error:
        pytest.skip(str(error))
    engine = engine_of(SETTINGS)
    assert isinstance(engine, LlamaEngine)
    return engine


def _body(number: int, tokens: int) -> dict[str, Any]:
    text = f"{number}: tell me a story. " + "Once upon a time. " * (number % 40)
    return {"model": "default", "input": text, "max_output_tokens": tokens}


async def _leave(live: Live, number: int, chance: random.Random) -> None:
    """Start a request and leave: while it waits, is prefilled, decodes, or is over."""
    stream = chance.random() < 0.7
    body = {**_body(number, 200), "stream": stream, "store": False}
    try:
        async with asyncio.timeout(chance.expovariate(8.0)):
            async with live.http.stream("POST", "/v1/responses", json=body) as answer:
                async for _ in answer.aiter_raw():
                    pass
    except TimeoutError:
        pass


@pytest.mark.anyio
@pytest.mark.timeout(300)
async def test_32_parallel_streams_are_all_well_formed() -> None:
    """N6, N7, O8: more streams than slots; each is complete."""
    engine = _engine()
    async with running(engine, SETTINGS) as live:
        streams = await asyncio.gather(
            *(live.stream(_body(number, 16)) for number in range(STREAMS))
        )
        assert len({stream.response["id"] for stream in streams}) == STREAMS
        assert all(stream.response["usage"]["output_tokens"] <= 16 for stream in streams)
        assert engine.slots.running == engine.slots.waiting == 0


@pytest.mark.anyio
@pytest.mark.timeout(300)
async def test_1000_disconnects_lose_no_slot_and_no_memory() -> None:
    """O13: whenever a client leaves, its slot comes back, in the server and in the worker."""
    engine = _engine()
    chance = random.Random(7)
    async with running(engine, SETTINGS) as live:
        gate = asyncio.Semaphore(AT_ONCE)

        async def one(number: int) -> None:
            async with gate:
                await _leave(live, number, chance)

        async def some(numbers: range) -> None:
            await asyncio.gather(*(one(number) for number in numbers))
            await live.service.runs.drain(0)
            assert engine.slots.running == engine.slots.waiting == 0

        worker = psutil.Process(engine.worker.process.pid)
        await some(range(DISCONNECTS // 4))
        before = worker.memory_info().rss, psutil.Process().memory_info().rss
        await some(range(DISCONNECTS // 4, DISCONNECTS))
        after = worker.memory_info().rss, psutil.Process().memory_info().rss

        assert engine.worker.process.pid == worker.pid
        # The prompt cache of the worker (256 MiB) fills up and then stays.
        assert after[0] - before[0] < 300 * 2**20
        assert after[1] - before[1] < 50 * 2**20
        answers = await asyncio.gather(*(live.create(_body(n, 4)) for n in range(8)))
        assert [answer.status_code for answer in answers] == [200] * 8


@pytest.mark.anyio
async def test_a_request_that_waits_outlives_the_worker() -> None:
    """N8: a dead worker fails what it was doing, not what was waiting for it."""
    try:
        models.find_default()
    except models.ModelError as error:
        pytest.skip(str(error))
    settings = Settings(slots=1, ctx_size=1024)
    engine = engine_of(settings)
    assert isinstance(engine, LlamaEngine)
    async with running(engine, settings) as live:
        running_ = asyncio.create_task(live.create(_body(1, 900)))
        async with asyncio.timeout(20):
            while engine.slots.running < 1:
                await live.http.get("/health")
        waiting = asyncio.create_task(live.create(_body(2, 4)))
        async with asyncio.timeout(20):
            while engine.slots.waiting < 1:
                await live.http.get("/health")
        psutil.Process(engine.worker.process.pid).kill()

        assert (await running_).status_code == 500
        assert (await waiting).status_code == 200
