"""What the reasoning echo saves: cached prompt tokens over a conversation of a thinking model.

The embedded engine with its default model and a reasoning template; a literal grammar makes
the model think. The client sends the visible answers back and never the traces, as most do.
"""

from __future__ import annotations

from antiphon.config import Settings
from benchmarks.servers import Row
from tests.support.bodies import Json, assistant, text_of, user
from tests.support.live import running
from tests.support.real import Told, config, template

TURNS = 5
TRACE = (
    "Let me think about this question step by step. The user wants a short answer, so I look "
    "at each part of it in turn and choose the one that fits the conversation best."
)


async def run(*, quick: bool) -> list[Row]:
    """A row per turn, with the echo and without it."""
    return [*await _conversation("on", 16_777_216), *await _conversation("off", 0)]


async def _conversation(name: str, limit: int) -> list[Row]:
    engine = Told(config(slots=1, template=template("thinking")))
    settings = Settings(reasoning_echo_max_bytes=limit, log_level="error")
    rows: list[Row] = []
    history: list[Json] = []
    async with running(engine, settings) as live:
        for turn in range(TURNS):
            engine.said = f"<think>\nTurn {turn}. {TRACE}\n</think>\n\nThe answer is {turn}."
            history.append(user(f"Question {turn}: what comes next?"))
            response = (await live.create({"model": "default", "input": history})).json()
            history.append(assistant(text_of(response)))
            usage = response["usage"]
            cached = usage["input_tokens_details"]["cached_tokens"]
            rows.append(
                {
                    "echo": name,
                    "turn": turn + 1,
                    "input_tokens": usage["input_tokens"],
                    "cached_tokens": cached,
                    "prefilled": usage["input_tokens"] - cached,
                }
            )
    return rows
