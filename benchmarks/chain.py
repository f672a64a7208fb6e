"""What a turn costs at the end of a long chain: time to create it, bytes to store it."""

from __future__ import annotations

import statistics
import time

import aiohttp

from antiphon.app import create_app
from antiphon.config import Settings
from antiphon.engines.scripted import ScriptedEngine
from antiphon.store.base import Limits
from antiphon.store.memory import MemoryStore
from benchmarks.inprocess import serving
from benchmarks.servers import Row, client

LENGTHS = (1, 10, 100, 1000)


async def run(*, quick: bool) -> list[Row]:
    """One row per chain length."""
    store = MemoryStore(Limits(entries=10_000))
    engine = ScriptedEngine({"answers": [{"chunks": ["Well, ", "yes."]}]})
    rows: list[Row] = []
    async with (
        serving(create_app(Settings(), engine, store), engine) as base,
        client() as http,
    ):
        last, length = "", 0
        for wanted in LENGTHS if not quick else LENGTHS[:3]:
            while length < wanted:
                last, length = await _turn(http, base, last), length + 1
            before, samples = store.stats(), []
            for _ in range(50):
                began = time.perf_counter()
                await _turn(http, base, last)
                samples.append((time.perf_counter() - began) * 1000)
            after = store.stats()
            rows.append(
                {
                    "chain": wanted,
                    "create_p50_ms": round(statistics.median(samples), 2),
                    "bytes_per_turn": (after.bytes - before.bytes) // 50,
                    "ratio_to_first": round(
                        statistics.median(samples) / float(str(rows[0]["create_p50_ms"])), 2
                    )
                    if rows
                    else 1.0,
                }
            )
    return rows


async def _turn(http: aiohttp.ClientSession, base: str, previous: str) -> str:
    body = {"model": "scripted", "input": "And what then?"}
    if previous:
        body["previous_response_id"] = previous
    async with http.post(f"{base}/v1/responses", json=body) as answer:
        found: str = (await answer.json())["id"]
        return found
