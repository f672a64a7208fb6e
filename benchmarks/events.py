"""CPU per streamed event, beside a bare Starlette loop that writes the same bytes.

`burst`: the engine says everything at once. `paced`: a pause before every token, as with a
model, so that every event is a write of its own. Measured is the CPU time of the server
process, divided by events. The bare loop replays a recorded stream of Antiphon, so that bytes,
events and pauses are the same.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import tempfile
from collections.abc import AsyncIterator
from pathlib import Path

import aiohttp

from benchmarks.servers import Process, Row, antiphon, client, medians, process

STREAMS = (1, 32, 256)
TOKENS_PER_RUN = 24_000


async def run(*, quick: bool) -> list[Row]:
    """One row per pace and number of streams."""
    return [
        {"pace": pace, "streams": streams, **await _compare(streams, pace == "paced", quick)}
        for pace in ("burst", "paced")
        for streams in STREAMS
    ]


async def _compare(streams: int, paced: bool, quick: bool) -> Row:
    # At most 8000 tokens per second, which leaves the processor some rest.
    pause = max(0.004, streams / 8000) if paced else 0.0
    tokens = min(TOKENS_PER_RUN // streams, 750 if paced else 3000) // (3 if quick else 1)
    async with (
        _scripted(pause) as ours,
        process("-m", "benchmarks.bare") as bare,
        client() as http,
    ):
        body = {"model": "scripted", "input": "x", "stream": True, "max_output_tokens": tokens}
        with tempfile.NamedTemporaryFile() as recorded:
            recorded.write(await _answer(http, ours, body))
            recorded.flush()
            replay = {"recorded": recorded.name, "pause": pause}
            await _answer(http, bare, replay)
            found = await medians(
                {
                    "ours": lambda _: _cpu_per_event(http, ours, body, streams),
                    "bare": lambda _: _cpu_per_event(http, bare, replay, streams),
                },
                2 if quick else 5,
            )
    return {
        "tokens": tokens,
        "ours_us": round(found["ours"], 1),
        "bare_us": round(found["bare"], 1),
        "ratio": round(found["ours"] / found["bare"], 2),
    }


@contextlib.asynccontextmanager
async def _scripted(pause: float) -> AsyncIterator[Process]:
    """Antiphon over an engine that says one word for ever."""
    answer = {"chunks": ["hello "], "infinite": True, "ms_per_token": pause * 1000}
    with tempfile.NamedTemporaryFile("w", suffix=".json") as script:
        json.dump({"slots": max(STREAMS), "answers": [answer]}, script)
        script.flush()
        async with antiphon("--engine", "scripted", "--script", str(Path(script.name))) as ours:
            yield ours


async def _cpu_per_event(
    http: aiohttp.ClientSession, server: Process, body: object, streams: int
) -> float:
    """Microseconds."""
    before = server.cpu()
    counts = await asyncio.gather(*(_count(http, server, body) for _ in range(streams)))
    return (server.cpu() - before) / sum(counts) * 1e6


async def _count(http: aiohttp.ClientSession, server: Process, body: object) -> int:
    count, last = 0, b""
    async with http.post(f"{server.base}/v1/responses", json=body) as answer:
        async for chunk in answer.content.iter_any():
            count += (last + chunk).count(b"\n\n")
            last = chunk[-1:] if not chunk.endswith(b"\n\n") else b""
    return count


async def _answer(http: aiohttp.ClientSession, server: Process, body: object) -> bytes:
    async with http.post(f"{server.base}/v1/responses", json=body) as answer:
        return await answer.read()
