"""Public bug reports, area E: the response object and its usage."""

from __future__ import annotations

import re
import time
from typing import Any

import pytest

from antiphon.config import Settings
from tests.support.bodies import (
    OK,
    WEATHER,
    Json,
    assistant,
    call,
    output,
    text_of,
    turns,
    user,
)
from tests.support.cases import case, refused
from tests.support.live import ask

pytestmark = pytest.mark.anyio

KEYS = [
    "id",
    "object",
    "created_at",
    "completed_at",
    "status",
    "incomplete_details",
    "model",
    "previous_response_id",
    "instructions",
    "output",
    "error",
    "tools",
    "tool_choice",
    "truncation",
    "parallel_tool_calls",
    "text",
    "top_p",
    "presence_penalty",
    "frequency_penalty",
    "top_logprobs",
    "temperature",
    "reasoning",
    "usage",
    "max_output_tokens",
    "max_tool_calls",
    "store",
    "background",
    "service_tier",
    "metadata",
    "safety_identifier",
    "prompt_cache_key",
]
STORY: Json = {"chunks": [f"word{n} " for n in range(40)]}


async def test_every_key_of_the_response_is_always_there() -> None:
    """B077 (O1): in the body, in every lifecycle event and when read back."""
    async with case(OK) as (live, _):
        plain = (await live.create(ask(max_output_tokens=16))).json()
        stream = await live.stream(ask(max_output_tokens=16, store=True))
        stored = (await live.http.get(f"/v1/responses/{stream.response['id']}")).json()
        opening = [event["response"] for event in stream.events[:2]]
        for response in (plain, stream.response, stored, *opening):
            assert set(KEYS) <= set(response)
            assert response["temperature"] == response["top_p"] == 1.0
            assert (response["tools"], response["metadata"]) == ([], {})
            assert response["text"] == {"format": {"type": "text"}}
            assert (response["truncation"], response["background"]) == ("disabled", False)


async def test_usage_is_counted() -> None:
    """B078 (O3): the same streamed and not, and equal to what input_tokens counts."""
    async with case(STORY) as (live, _):
        body = ask(max_output_tokens=16)
        usage = (await live.create(body)).json()["usage"]
        assert usage["input_tokens"] > 0
        assert usage["output_tokens"] == 16
        assert usage["total_tokens"] == usage["input_tokens"] + usage["output_tokens"]
        assert (await live.stream(body)).response["usage"] == usage
        long = ask("hi " * 200, max_output_tokens=16)
        more = (await live.create(long)).json()["usage"]["input_tokens"]
        assert more > 10 * usage["input_tokens"]
        counted = await live.http.post("/v1/responses/input_tokens", json=ask("hi " * 200))
        assert counted.json()["input_tokens"] == more


async def test_token_details_are_numbers_that_fit() -> None:
    """B079 (O3): cached tokens are part of the input, reasoning tokens of the output."""
    cached = {"chunks": ["ok"], "cached_tokens": 200}
    thinking = {"reasoning": ["h", "m"], "chunks": ["ok"]}
    async with case(OK, cached, thinking) as (live, _):
        found = []
        for tail in "ABC":
            usage = (await live.create(ask("word " * 1000 + tail))).json()["usage"]
            cached_tokens = usage["input_tokens_details"]["cached_tokens"]
            reasoning_tokens = usage["output_tokens_details"]["reasoning_tokens"]
            assert cached_tokens <= usage["input_tokens"]
            assert reasoning_tokens <= usage["output_tokens"]
            found.append((cached_tokens, reasoning_tokens))
        assert found == [(0, 0), (200, 0), (0, 2)]


async def test_times_are_whole_seconds() -> None:
    """B080 (O2): in the bytes of the body, the stream and the stored response."""
    async with case(OK) as (live, _):
        body = (await live.create(ask())).text
        stream = (await live.create(ask(stream=True))).text
        id = re.findall(r'"id":"(resp_\w+)"', body)[0]
        stored = (await live.http.get(f"/v1/responses/{id}")).text
        for text in (body, stream, stored):
            written = re.findall(r'"created_at":([^,}]*)[,}]', text)
            assert written
            for number in written:
                assert re.fullmatch("[0-9]{10}", number)
                assert abs(int(number) - time.time()) < 60


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("top_p", 2.0),
        ("top_p", -0.1),
        ("temperature", -1),
        ("temperature", 2.5),
        ("top_logprobs", 21),
        ("temperature", "hot"),
        ("max_output_tokens", 0),
        ("max_output_tokens", -5),
        ("max_output_tokens", 1.5),
    ],
)
async def test_a_number_out_of_range_never_reaches_the_engine(field: str, value: Any) -> None:
    """B082, B083 (C12, C13): 400 with that param."""
    async with case(OK) as (live, engine):
        refused(await live.create(ask(**{field: value})), field)
        assert engine.calls == []


@pytest.mark.parametrize("limit", [1, 2])
async def test_a_small_limit_is_kept_exactly(limit: int) -> None:
    """B083 (C12): 1 and 2 are limits like any other."""
    async with case(STORY) as (live, _):
        response = (await live.create(ask(max_output_tokens=limit))).json()
        assert response["status"] == "incomplete"
        assert response["usage"]["output_tokens"] == limit
        assert response["max_output_tokens"] == limit


async def test_metadata_is_kept_and_never_shown_to_the_model() -> None:
    """B085 (C17): equal in body, stream and stored response."""
    metadata = {"trace": "abc", "ключ": "ё"}
    async with case(OK) as (live, engine):
        plain = (await live.create(ask(metadata=metadata))).json()
        stream = await live.stream(ask(metadata=metadata))
        stored = (await live.http.get(f"/v1/responses/{plain['id']}")).json()
        for response in (plain, stream.response, stream.events[0]["response"], stored):
            assert response["metadata"] == metadata
        assert "abc" not in repr(engine.calls[0].prompt)


@pytest.mark.parametrize(
    ("metadata", "param"),
    [
        ({"k": 1}, "metadata.k"),
        ({f"k{n}": "v" for n in range(17)}, "metadata"),
        ({"k": "v" * 513}, "metadata"),
        ({"k" * 65: "v"}, "metadata"),
    ],
    ids=["number", "17 pairs", "long value", "long key"],
)
async def test_metadata_is_bounded(metadata: Json, param: str) -> None:
    """B085 (C17): 400."""
    async with case(OK) as (live, _):
        refused(await live.create(ask(metadata=metadata)), param)


@pytest.mark.parametrize(
    "settings", [Settings(compat="openai"), Settings(truncation="auto")], ids=["openai", "flag"]
)
async def test_truncation_drops_the_oldest_items(settings: Settings) -> None:
    """B087 (P4): never the last user turn or the instructions; a call goes with its output."""
    history = [
        user("old " * 3000),
        assistant("ok"),
        call("a", arguments="{}"),
        output("a", "x"),
        user("Say hi."),
    ]
    body = ask(history, tools=[WEATHER], instructions="Be brief.", max_output_tokens=16)
    async with case(OK, settings=settings, context_window=1024) as (live, engine):
        answer = await live.create({**body, "truncation": "auto"})
        assert answer.status_code == 200, answer.text
        assert answer.json()["truncation"] == "auto"
        assert text_of(answer.json()) == "ok"
        seen = turns(engine)
        assert seen[0] == ("system", "Be brief.")
        assert seen[-1] == ("user", "Say hi.")
        assert ("tool", "x") in seen
        assert len(engine.calls[0].prompt.turns[1].calls) == 1
        assert not any("old" in text for _, text in seen)
        assert answer.headers["antiphon-ignored"] == "input:1-oldest-items"
        answer = await live.create({**body, "truncation": "disabled"})
        refused(answer, "input", code="context_length_exceeded")


async def test_truncation_is_refused_under_the_strict_policy() -> None:
    """B087 (C15): 400, param truncation."""
    async with case(OK) as (live, engine):
        refused(await live.create(ask(truncation="auto")), "truncation", code="unsupported_feature")
        refused(await live.create(ask(truncation="some")), "truncation")
        assert engine.calls == []
