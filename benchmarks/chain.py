"""What a turn costs at the end of a long chain: time to create it, bytes to store it.

`create_ms`: the history is the one that the server used last. `cold_ms`: so many other
responses were made in between that the server has to read the chain from its store again.
"""

from __future__ import annotations

import statistics
import time

import aiohttp

from antiphon.app import create_app
from antiphon.config import Settings
from antiphon.core.context import CACHED_TRANSCRIPTS
from antiphon.engines.scripted import ScriptedEngine
from antiphon.store.base import Limits
from antiphon.store.memory import MemoryStore
from benchmarks.inprocess import serving
from benchmarks.servers import Row, client

LENGTHS = (1, 10, 100, 1000)


async def run(*, quick: bool) -> list[Row]:
    """One row per number of responses that the new one continues."""
    store = MemoryStore(Limits(entries=10_000))
    engine = ScriptedEngine({"answers": [{"chunks": ["Well, ", "yes."]}]})
    repeats = 50 if quick else 200
    found: dict[int, tuple[float, float, int]] = {}
    async with serving(create_app(Settings(), engine, store), engine) as base, client() as http:
        last, length = "", 0
        for wanted in LENGTHS:
            while length < wanted:
                last, length = await _turn(http, base, last), length + 1
            before = store.stats().bytes
            warm = [await _timed(http, base, last) for _ in range(repeats)]
            size = (store.stats().bytes - before) // repeats
            cold: list[float] = []
            for _ in range(2 if quick else 5):
                for _ in range(CACHED_TRANSCRIPTS):
                    await _turn(http, base, "")
                cold.append(await _timed(http, base, last))
            found[wanted] = statistics.median(warm), statistics.median(cold), size
    first, _, least = found[LENGTHS[0]]
    return [
        {
            "chain": wanted,
            "create_ms": round(warm, 2),
            "ratio": round(warm / first, 2),
            "cold_ms": round(cold, 2),
            "bytes_per_turn": size,
            "bytes_ratio": round(size / least, 2),
        }
        for wanted, (warm, cold, size) in found.items()
    ]


async def _timed(http: aiohttp.ClientSession, base: str, previous: str) -> float:
    """Milliseconds."""
    began = time.perf_counter()
    await _turn(http, base, previous)
    return (time.perf_counter() - began) * 1000


async def _turn(http: aiohttp.ClientSession, base: str, previous: str) -> str:
    body = {"model": "scripted", "input": "And what then?"}
    if previous:
        body["previous_response_id"] = previous
    async with http.post(f"{base}/v1/responses", json=body) as answer:
        answer.raise_for_status()
        found: str = (await answer.json())["id"]
        return found
