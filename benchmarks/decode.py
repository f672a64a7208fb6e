"""Tokens per second through `/v1/responses`, beside llama.cpp driven directly.

Two workers of the same build with the same slots and threads; one is Antiphon's, to the other
this file sends the same prompts, as token ids, with the same sampling. Decoding is greedy, so
that both say the same. Prefill is part of both; rendering and tokenising is part of ours only.
"""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Awaitable, Callable, Iterable
from functools import partial

import aiohttp

from antiphon.engine.types import Prompt, Sampling, Turn
from antiphon.engines import models
from antiphon.engines.llamacpp.config import LlamaConfig
from antiphon.engines.llamacpp.engine import LlamaEngine
from benchmarks.servers import Process, Row, antiphon, client, medians

TURNS = {1: 9, 4: 7, 16: 5}
TOKENS = 64
SLOTS, CONTEXT = 16, 1024
# Answered at length: the model does not end its turn before it has said 64 tokens.
TEXT = "Story number {}. Tell me a long story about a dragon and a castle, with many chapters."


async def run(*, quick: bool) -> list[Row]:
    """One row per number of streams."""
    engine = LlamaEngine(
        LlamaConfig(models.find_default(), models.MODEL_ID, slots=SLOTS, ctx_size=CONTEXT)
    )
    flags = ("--slots", str(SLOTS), "--ctx-size", str(CONTEXT))
    tokens = TOKENS // 2 if quick else TOKENS
    rows: list[Row] = []
    await engine.start()
    try:
        async with antiphon(*flags) as ours, client() as http:
            for streams, turns in TURNS.items():
                found = await medians(
                    {
                        "ours": partial(_ours, http, ours, streams, tokens),
                        "direct": partial(_directly, engine, streams, tokens),
                    },
                    2 if quick else turns,
                )
                rows.append(
                    {
                        "streams": streams,
                        "ours_tok_s": round(found["ours"], 1),
                        "direct_tok_s": round(found["direct"], 1),
                        "ratio": round(found["ours"] / found["direct"], 3),
                    }
                )
    finally:
        await engine.close()
    return rows


def _texts(streams: int, turn: int) -> list[str]:
    """Texts that no other run has, so that no prompt is in the cache."""
    return [TEXT.format(10_000 * streams + 100 * turn + n) for n in range(streams)]


async def _rate(answers: Iterable[Awaitable[int]]) -> float:
    began = time.perf_counter()
    counts = await asyncio.gather(*answers)
    return sum(counts) / (time.perf_counter() - began)


async def _ours(
    http: aiohttp.ClientSession, server: Process, streams: int, tokens: int, turn: int
) -> float:
    async def ask(text: str) -> int:
        body = {
            "model": "default",
            "input": text,
            "stream": True,
            "temperature": 0,
            "max_output_tokens": tokens,
        }
        async with http.post(f"{server.base}/v1/responses", json=body) as answer:
            last = await _last(answer, lambda line: b'"response.incomplete"' in line)
        return int(json.loads(last)["response"]["usage"]["output_tokens"])

    return await _rate(map(ask, _texts(streams, turn)))


async def _directly(engine: LlamaEngine, streams: int, tokens: int, turn: int) -> float:
    async def ask(prompt: list[int]) -> int:
        body = {
            "prompt": prompt,
            "n_predict": tokens,
            "samplers": ["penalties", "temperature", "top_k", "top_p", "min_p"],
            "temperature": 0,
            "stream": True,
            "cache_prompt": True,
        }
        async with await engine.worker.client.complete(body) as answer:
            last = await _last(answer, lambda line: b'"stop":true' in line)
        return int(json.loads(last)["tokens_predicted"])

    sampling = Sampling(temperature=0, max_tokens=tokens)
    prompts = [
        await engine.prepare(Prompt(models.MODEL_ID, (Turn("user", text),), sampling=sampling))
        for text in _texts(streams, turn)
    ]
    return await _rate(ask(prompt.payload.tokens) for prompt in prompts)


async def _last(answer: aiohttp.ClientResponse, is_last: Callable[[bytes], bool]) -> bytes:
    """The data of the last event; the answer is read to its end."""
    found = b""
    async for line in answer.content:
        if line.startswith(b"data: ") and is_last(line):
            found = line.removeprefix(b"data: ")
    return found
