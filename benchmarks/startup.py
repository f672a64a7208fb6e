"""From the start of the command to the ready line and to the first answer; memory then."""

from __future__ import annotations

import asyncio
import statistics
import sys
import time

from benchmarks.servers import Row, antiphon, client


async def run(*, quick: bool) -> list[Row]:
    """One row for the server with its default model, one for `--help`."""
    ready: list[float] = []
    first: list[float] = []
    memory: dict[str, int] = {}
    for _ in range(2 if quick else 5):
        began = time.perf_counter()
        async with antiphon() as server, client() as http:
            ready.append(time.perf_counter() - began)
            body = {"model": "default", "input": "Say hello.", "max_output_tokens": 1}
            async with http.post(f"{server.base}/v1/responses", json=body) as answer:
                answer.raise_for_status()
                await answer.read()
            first.append(time.perf_counter() - began)
            memory = server.rss()
    return [
        {
            "ready_s": round(statistics.median(ready), 2),
            "first_answer_s": round(statistics.median(first), 2),
            **memory,
        },
        {"help_ms": round(statistics.median([await _help() for _ in range(5)]) * 1000)},
    ]


async def _help() -> float:
    began = time.perf_counter()
    child = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "antiphon", "serve", "--help", stdout=asyncio.subprocess.DEVNULL
    )
    await child.wait()
    return time.perf_counter() - began
