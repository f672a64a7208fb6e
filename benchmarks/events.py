"""CPU per streamed event, beside a bare Starlette loop that writes the same bytes.

`burst`: the engine says everything at once. `paced`: a pause before every token, as a model
has it. The ratio is CPU time of the server process per event.
"""

from __future__ import annotations

import asyncio
import json
import statistics
import tempfile
from pathlib import Path

import aiohttp

from benchmarks.servers import Process, Row, antiphon, client, free_port, process

STREAMS = (1, 32, 256)
PACES = {"burst": 0.0, "paced": 0.004}


async def run(*, quick: bool) -> list[Row]:
    """One row per pace and number of streams."""
    rows: list[Row] = []
    for pace, pause in PACES.items():
        with tempfile.TemporaryDirectory() as folder:
            script = Path(folder) / "script.json"
            answer = {"chunks": ["hello "], "infinite": True, "ms_per_token": pause * 1000}
            script.write_text(json.dumps({"slots": 512, "answers": [answer]}))
            port = free_port()
            async with (
                antiphon("--engine", "scripted", "--script", str(script)) as ours,
                process(["-m", "benchmarks.bare", str(port)], port, "is ready") as bare,
                client() as http,
            ):
                for streams in STREAMS:
                    total = (6_000 if quick else 24_000) if pause else (30_000 if quick else 90_000)
                    rows.append(
                        {"pace": pace, **await _compare(http, ours, bare, streams, total, pause)}
                    )
    return rows


async def _compare(
    http: aiohttp.ClientSession,
    ours: Process,
    bare: Process,
    streams: int,
    total: int,
    pause: float,
) -> Row:
    each = max(50, min(total // streams, 1500 if pause else total))
    found: dict[str, list[float]] = {"ours": [], "bare": []}
    for _ in range(3):
        for name, server in (("ours", ours), ("bare", bare)):
            found[name].append(await _cpu_per_event(http, server, streams, each, pause))
    mine, base = statistics.median(found["ours"]), statistics.median(found["bare"])
    return {
        "streams": streams,
        "events": streams * each,
        "ours_us": round(mine, 1),
        "bare_us": round(base, 1),
        "ratio": round(mine / base, 2),
    }


async def _cpu_per_event(
    http: aiohttp.ClientSession, server: Process, streams: int, each: int, pause: float
) -> float:
    before = server.cpu()
    counts = await asyncio.gather(*(_read(http, server, each, pause) for _ in range(streams)))
    return (server.cpu() - before) / sum(counts) * 1e6


async def _read(http: aiohttp.ClientSession, server: Process, each: int, pause: float) -> int:
    body = {
        "model": "scripted",
        "input": "x",
        "stream": True,
        "store": False,
        "max_output_tokens": each,
        "pause": pause,
    }
    async with http.post(f"{server.base}/v1/responses", json=body) as answer:
        count = 0
        async for chunk in answer.content.iter_any():
            count += chunk.count(b"event: ")
        return count
