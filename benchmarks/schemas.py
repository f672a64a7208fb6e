"""How much of JSON schema is enforced, how long a schema takes, and what it costs per token.

Coverage is that of the JSON schema test suite, judged as in the tests. The cost per token is
the time of an answer that is held to a schema less that of a free one of as many tokens, both
greedy, by the embedded engine with its default model.
"""

from __future__ import annotations

import time
from functools import partial
from pathlib import Path

from antiphon.engine.types import JsonOutput, Prompt, Sampling, Text, Turn, Usage
from antiphon.engines import models
from antiphon.engines.llamacpp.config import LlamaConfig
from antiphon.engines.llamacpp.engine import LlamaEngine
from benchmarks.servers import Row, medians
from tests.support.schemas import DRAFTS, fetch, judge

TOKENS = 128
# Said at length: the array has to be filled.
LONG = JsonOutput(
    {
        "type": "array",
        "minItems": 100,
        "items": {
            "type": "object",
            "properties": {
                "name": {"type": "string", "minLength": 4},
                "kind": {"enum": ["cat", "dog", "bird", "fish"]},
                "age": {"type": "integer"},
            },
            "required": ["name", "kind", "age"],
            "additionalProperties": False,
        },
    }
)


async def run(*, quick: bool) -> list[Row]:
    """A row per draft, and one for the cost of a token."""
    folder = fetch()
    return [*(_coverage(folder, draft) for draft in DRAFTS), await _cost(3 if quick else 9)]


def _coverage(folder: Path, draft: str) -> Row:
    found = judge(folder / draft)
    times = sorted(found.seconds)
    return {
        "draft": draft,
        **{name.replace(" ", "_"): count for name, count in sorted(found.counts.items())},
        "schemas": len(times),
        "compile_ms_median": round(times[len(times) // 2] * 1000, 2),
        "compile_ms_p95": round(times[len(times) * 95 // 100] * 1000, 2),
    }


async def _cost(turns: int) -> Row:
    engine = LlamaEngine(
        LlamaConfig(models.find_default(), models.MODEL_ID, slots=1, ctx_size=1024)
    )
    await engine.start()
    try:
        found = await medians(
            {"free": partial(_per_token, engine, None), "held": partial(_per_token, engine, LONG)},
            turns,
        )
    finally:
        await engine.close()
    return {
        "free_ms_per_token": round(found["free"], 2),
        "held_ms_per_token": round(found["held"], 2),
        "cost_ms_per_token": round(found["held"] - found["free"], 2),
    }


async def _per_token(engine: LlamaEngine, output: JsonOutput | None, turn: int) -> float:
    """Milliseconds per token, the first one and the prompt left out."""
    prompt = Prompt(
        models.MODEL_ID,
        (Turn("user", f"Number {turn}. Tell me about a hundred animals at length."),),
        output=output,
        sampling=Sampling(temperature=0.0, max_tokens=TOKENS),
    )
    first, count = 0.0, 0
    async for delta in engine.generate(await engine.prepare(prompt)):
        if isinstance(delta, Text):
            first = first or time.perf_counter()
        elif isinstance(delta, Usage):
            count = delta.output_tokens
    return (time.perf_counter() - first) * 1000 / (count - 1)
