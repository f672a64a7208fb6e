"""Log-probabilities over HTTP, from the real model (contract C14)."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator

import pytest

from antiphon.engines.llamacpp.engine import LlamaEngine
from tests.support.bodies import WEATHER, Json
from tests.support.cases import refused
from tests.support.live import Live, ask, running, scripted
from tests.support.real import Told, config, template
from tests.support.streams import Stream

pytestmark = pytest.mark.anyio

INCLUDE = ["message.output_text.logprobs"]


@pytest.fixture(scope="module")
def anyio_backend() -> str:
    """One event loop for the module, so that its tests can share an engine."""
    return "asyncio"


@pytest.fixture(scope="module")
async def live() -> AsyncIterator[Live]:
    async with running(LlamaEngine(config(slots=2))) as live:
        yield live


def tell(text: str = "Say hi.", /, **more: object) -> Json:
    """A request for a short greedy answer."""
    fixed = {"model": "default", "temperature": 0, "max_output_tokens": 12}
    return {**ask(text), **fixed, **more}


def spelled(logprobs: list[Json]) -> str:
    """What the tokens spell."""
    return bytes(byte for one in logprobs for byte in one["bytes"]).decode()


def part(response: Json) -> Json:
    """The text part of the last item."""
    found: Json = response["output"][-1]["content"][0]
    return found


def of_deltas(streamed: Stream) -> list[Json]:
    """All log-probabilities of the deltas, each of which is spelled by its own."""
    found: list[Json] = []
    for event in streamed.events:
        if event["type"] == "response.output_text.delta":
            assert spelled(event["logprobs"]) == event["delta"]
            found += event["logprobs"]
    return found


@pytest.mark.parametrize("count", [1, 3, 20])
async def test_deltas_done_and_part_agree_and_spell_the_text(live: Live, count: int) -> None:
    """C14, O10: so many alternatives each, the likeliest first and the chosen one among them."""
    streamed = await live.stream(tell(top_logprobs=count))
    final = part(streamed.response)
    (done,) = [e for e in streamed.events if e["type"] == "response.output_text.done"]
    assert of_deltas(streamed) == done["logprobs"] == final["logprobs"]
    assert spelled(final["logprobs"]) == final["text"]
    assert streamed.response["top_logprobs"] == count
    for one in final["logprobs"]:
        top = one["top_logprobs"]
        assert len(top) == count
        assert [other["logprob"] for other in top] == sorted(
            (other["logprob"] for other in top), reverse=True
        )
        assert (top[0]["token"], top[0]["logprob"]) == (one["token"], one["logprob"])
        assert one["logprob"] <= 0


async def test_a_plain_answer_has_the_same(live: Live) -> None:
    """C14: greedy, so that both say the same."""
    plain = part((await live.create(tell(top_logprobs=2))).json())
    streamed = part((await live.stream(tell(top_logprobs=2))).response)
    assert plain["text"] == streamed["text"]
    assert [one["token"] for one in plain["logprobs"]] == [
        one["token"] for one in streamed["logprobs"]
    ]


async def test_the_include_alone_gives_no_alternatives(live: Live) -> None:
    """C14: top_logprobs is 0."""
    final = part((await live.stream(tell(include=INCLUDE))).response)
    assert spelled(final["logprobs"]) == final["text"]
    assert all(one["top_logprobs"] == [] for one in final["logprobs"])


async def test_nobody_gets_them_unasked(live: Live) -> None:
    """C14: the lists are there, and empty."""
    streamed = await live.stream(tell())
    assert of_deltas_empty(streamed)
    assert part(streamed.response)["logprobs"] == []


def of_deltas_empty(streamed: Stream) -> bool:
    """Whether no delta has log-probabilities."""
    return not any(event.get("logprobs") for event in streamed.events)


async def test_they_are_stored(live: Live) -> None:
    """C14, O4: GET returns them."""
    made = (await live.create(tell(top_logprobs=2))).json()
    assert (await live.http.get(f"/v1/responses/{made['id']}")).json() == made
    again = await live.create({**tell("And?"), "previous_response_id": made["id"]})
    assert again.status_code == 200


async def test_a_constrained_answer_has_them(live: Live) -> None:
    """C14, C5: with characters of several tokens."""
    schema = {
        "type": "object",
        "properties": {"状态": {"enum": ["在线", "離線"]}},
        "required": ["状态"],
        "additionalProperties": False,
    }
    format = {"type": "json_schema", "name": "n", "schema": schema}
    body = tell(text={"format": format}, top_logprobs=1, max_output_tokens=64)
    streamed = await live.stream(body)
    final = part(streamed.response)
    assert json.loads(final["text"])["状态"] in ("在线", "離線")
    assert of_deltas(streamed) == final["logprobs"]
    assert spelled(final["logprobs"]) == final["text"]


async def test_a_call_has_none(live: Live) -> None:
    """C14: they are those of text."""
    body = tell(tools=[WEATHER], tool_choice="required", top_logprobs=2, max_output_tokens=64)
    streamed = await live.stream(body)
    assert [item["type"] for item in streamed.response["output"]] == ["function_call"]
    assert of_deltas_empty(streamed)


async def test_those_of_a_trace_are_left_out() -> None:
    """C14, R1: what is left spells the message and nothing else."""
    engine = Told(config(slots=1, template=template("thinking")))
    engine.said = "<think>\nI think so.\n</think>\n\nHello there."
    async with running(engine) as live:
        streamed = await live.stream(tell(top_logprobs=1, max_output_tokens=64))
        kinds = [item["type"] for item in streamed.response["output"]]
        assert kinds == ["reasoning", "message"]
        final = part(streamed.response)
        assert final["text"] == "Hello there."
        told = "".join(one["token"] for one in final["logprobs"])
        assert told.lstrip("\n") == final["text"]
        assert of_deltas_tokens(streamed) == [one["token"] for one in final["logprobs"]]


def of_deltas_tokens(streamed: Stream) -> list[str]:
    """The tokens of the deltas."""
    return [
        one["token"]
        for event in streamed.events
        if event["type"] == "response.output_text.delta"
        for one in event["logprobs"]
    ]


@pytest.mark.parametrize("count", [-1, 21, 1.5, "3", True])
async def test_a_count_out_of_range_is_refused(live: Live, count: object) -> None:
    """C14: 0..20."""
    refused(await live.create(tell(top_logprobs=count)), "top_logprobs")


async def test_an_engine_that_has_none_says_so() -> None:
    """C14: 400, streamed and not."""
    async with scripted() as (live, _):
        wanted = (({"top_logprobs": 1}, "top_logprobs"), ({"include": INCLUDE}, "include"))
        for more, param in wanted:
            for stream in (False, True):
                answer = await live.create(ask(**more, stream=stream))
                refused(answer, param, code="unsupported_feature")
