"""Tokens per second through `/v1/responses`, beside llama.cpp driven directly.

Both run the same worker with the same slots and threads on the same prompts and the same
sampling; the direct side talks to the worker's own route. Runs alternate; the ratio is that of
the medians. Prefill is part of both.
"""

from __future__ import annotations

import asyncio
import json
import statistics
import time
from collections.abc import Awaitable, Callable
from typing import Any

import aiohttp

from antiphon.engine.types import Prompt, Sampling, Turn
from antiphon.engines import models
from antiphon.engines.llamacpp.config import LlamaConfig
from antiphon.engines.llamacpp.engine import LlamaEngine
from benchmarks.servers import Process, Row, antiphon, client

STREAMS = (1, 4, 16)
SLOTS, CONTEXT, TOKENS = 16, 1024, 64
TEXT = "Story number {}. Tell me a long story about a dragon and a castle, with many chapters."


async def run(*, quick: bool) -> list[Row]:
    """One row per number of streams."""
    path = models.find_default()
    engine = LlamaEngine(
        LlamaConfig(path, models.MODEL_ID, slots=SLOTS, ctx_size=CONTEXT, waiting=64)
    )
    await engine.start()
    flags = ("--slots", str(SLOTS), "--ctx-size", str(CONTEXT))
    rows: list[Row] = []
    try:
        async with antiphon(*flags) as ours, client() as http:
            for streams in STREAMS:
                found: dict[str, list[float]] = {"ours": [], "direct": []}
                for turn in range(3 if quick else 7):
                    for name, ask in (
                        ("ours", lambda n: _through_us(http, ours, n)),
                        ("direct", lambda n: _directly(engine, n)),
                    ):
                        found[name].append(await _rate(ask, streams, turn))
                mine = statistics.median(found["ours"])
                direct = statistics.median(found["direct"])
                rows.append(
                    {
                        "streams": streams,
                        "ours_tok_s": round(mine, 1),
                        "direct_tok_s": round(direct, 1),
                        "ratio": round(mine / direct, 3),
                    }
                )
    finally:
        await engine.close()
    return rows


async def _rate(ask: Callable[[int], Awaitable[int]], streams: int, turn: int) -> float:
    began = time.perf_counter()
    counts = await asyncio.gather(*(ask(1000 * turn + n) for n in range(streams)))
    return sum(counts) / (time.perf_counter() - began)


async def _through_us(http: aiohttp.ClientSession, server: Process, number: int) -> int:
    body = {
        "model": "default",
        "input": TEXT.format(number),
        "stream": True,
        "temperature": 0,
        "max_output_tokens": TOKENS,
    }
    tokens = 0
    async with http.post(f"{server.base}/v1/responses", json=body) as answer:
        async for line in answer.content:
            if line.startswith(b'data: {"sequence_number"') and b'"usage":{' in line:
                tokens = json.loads(line[6:])["response"]["usage"]["output_tokens"]
    return tokens


async def _directly(engine: LlamaEngine, number: int) -> int:
    """The raw route of the worker, with the same tokens and the same sampling."""
    prompt = Prompt(
        models.MODEL_ID,
        (Turn("user", TEXT.format(number)),),
        sampling=Sampling(temperature=0, max_tokens=TOKENS),
    )
    prepared = await engine.prepare(prompt)
    body: dict[str, Any] = {
        "prompt": prepared.payload.tokens,
        "n_predict": TOKENS,
        "temperature": 0,
        "stream": True,
        "cache_prompt": True,
    }
    tokens = 0
    async with await engine.worker.client.complete(body) as answer:
        async for line in answer.content:
            if line.startswith(b"data: ") and b'"stop":true' in line:
                tokens = json.loads(line[6:])["tokens_predicted"]
    return tokens
