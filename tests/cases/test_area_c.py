"""Public bug reports, area C: streams.

`live.stream` proves of every stream what STREAM-OK asks; the cases look at what is special.
"""

from __future__ import annotations

import pytest

from tests.support.bodies import CALLS_WEATHER, OK, WEATHER, Json, text_of
from tests.support.cases import case, refused
from tests.support.live import ask, error_of, scripted
from tests.support.streams import Stream
from tests.support.wire import connected, ended, happens

pytestmark = pytest.mark.anyio

COUNT: Json = {"chunks": ["one", " two", " three"]}
STORY: Json = {"chunks": [f"word{n} " for n in range(40)]}


def of_type(stream: Stream, kind: str) -> list[Json]:
    """The events of one type."""
    return [event for event in stream.events if event["type"] == kind]


async def test_a_text_goes_through_its_whole_life() -> None:
    """B048: added, part, deltas, done, part done, item done, completed; one text everywhere."""
    async with case(COUNT) as (live, _):
        stream = await live.stream(ask("Count to three.", max_output_tokens=32))
        assert stream.types == [
            "response.created",
            "response.in_progress",
            "response.output_item.added",
            "response.content_part.added",
            "response.output_text.delta",
            "response.output_text.done",
            "response.content_part.done",
            "response.output_item.done",
            "response.completed",
        ]
        assert [event["delta"] for event in of_type(stream, "response.output_text.delta")] == [
            "one",
            " two",
            " three",
        ]
        assert stream.text == text_of(stream.response) == "one two three"


async def test_the_terminal_event_carries_everything() -> None:
    """B049: output, usage and status; the opening events have neither output nor usage."""
    async with case(COUNT) as (live, _):
        stream = await live.stream(ask())
        final = stream.response
        items = [event["item"] for event in of_type(stream, "response.output_item.done")]
        assert final["output"] == items
        assert final["status"] == "completed"
        assert final["usage"]["output_tokens"] == 3
        for event in stream.events[:2]:
            assert (event["response"]["output"], event["response"]["usage"]) == ([], None)


async def test_an_item_is_the_same_in_events_in_the_response_and_when_read_back() -> None:
    """B050: ids, call ids, status and content never change."""
    every = {"reasoning": "hm", "chunks": ["Let me see."], **CALLS_WEATHER}
    async with case(every) as (live, _):
        stream = await live.stream(ask("Weather?", tools=[WEATHER], store=True))
        id = stream.response["id"]
        assert stream.events[0]["response"]["id"] == id
        stored = (await live.http.get(f"/v1/responses/{id}")).json()
        assert stored == stream.response
        items = [event["item"] for event in of_type(stream, "response.output_item.done")]
        assert stored["output"] == items
        assert [item["id"].split("_")[0] for item in items] == ["rs", "msg", "fc"]
        assert items[2]["call_id"].startswith("call_")


@pytest.mark.parametrize("answer", [COUNT, CALLS_WEATHER], ids=["text", "call"])
async def test_every_event_has_its_number(answer: Json) -> None:
    """B051: dense from 0, and the 0 is written."""
    async with case(answer) as (live, _):
        body = ask("Weather?", tools=[WEATHER], stream=True)
        raw = (await live.create(body)).text
        assert '"sequence_number":0,' in raw
        stream = await live.stream(ask("Weather?", tools=[WEATHER]))
        numbers = [event["sequence_number"] for event in stream.events]
        assert numbers == list(range(len(numbers)))


@pytest.mark.parametrize(
    ("sequence", "kinds"),
    [
        (
            [{"tool_call": CALLS_WEATHER["tool_calls"][0]}, {"text": "Done."}],
            ["function_call", "message"],
        ),
        (
            [
                {"reasoning": "hm"},
                {"text": "Done."},
                {"tool_call": CALLS_WEATHER["tool_calls"][0]},
            ],
            ["reasoning", "message", "function_call"],
        ),
    ],
    ids=["call first", "all three"],
)
async def test_items_are_numbered_in_the_order_they_come(
    sequence: list[Json], kinds: list[str]
) -> None:
    """B053: a call before the text has index 0."""
    async with case({"sequence": sequence}) as (live, _):
        stream = await live.stream(ask("x", tools=[WEATHER]))
        assert [item["type"] for item in stream.response["output"]] == kinds
        added = of_type(stream, "response.output_item.added")
        assert [event["output_index"] for event in added] == list(range(len(kinds)))
        assert [event["item"]["type"] for event in added] == kinds


async def test_a_character_that_is_split_over_tokens_comes_whole() -> None:
    """B055: no U+FFFD, nothing lost, the same text without a stream."""
    split = {"bytes_hex": ["6f6b20f09f", "90b120e6bc", "a2e5ad97", "20c3", "a9"]}
    async with case(split) as (live, _):
        stream = await live.stream(ask("x"))
        plain = (await live.create(ask("x"))).json()
        assert stream.text == text_of(stream.response) == text_of(plain) == "ok 🐱 漢字 é"


async def test_characters_of_arguments_come_whole() -> None:
    """B055: in the arguments of a call as well."""
    pieces = ['{"city":"', "漢", "字 ", "🐱", '"}']
    script = {"tool_calls": [{"name": "get_weather", "arguments": pieces}]}
    async with case(script) as (live, _):
        stream = await live.stream(ask("x", tools=[WEATHER]))
        assert stream.response["output"][0]["arguments"] == '{"city":"漢字 🐱"}'


async def test_bytes_that_never_become_a_character_are_dropped() -> None:
    """B056: the same text streamed and not, and the status is that of the finish."""
    async with case({"bytes_hex": ["6162", "f09f90"], "finish": "length"}) as (live, _):
        stream = await live.stream(ask("x", max_output_tokens=16))
        plain = (await live.create(ask("x", max_output_tokens=16))).json()
        assert text_of(stream.response) == text_of(plain) == "ab"
        assert stream.response["status"] == plain["status"] == "incomplete"


@pytest.mark.parametrize("stream", [True, False])
async def test_a_failure_before_the_first_event_is_an_http_error(stream: bool) -> None:
    """B058: the engine refuses, or the model does not exist; streamed and not alike."""
    async with scripted({"refuse_at_admission": True}) as (live, engine):
        unknown = await live.create({"model": "no-such-model", "input": "x", "stream": stream})
        refused(unknown, "model", status=404, code="model_not_found")
        busy = await live.create(ask("x", stream=stream))
        assert busy.status_code == 503
        error = error_of(busy)
        assert (error["type"], error["code"]) == ("server_error", "server_overloaded")
        assert int(busy.headers["retry-after"]) >= 1
        assert engine.calls == []
        assert (await live.http.get("/health")).status_code == 200


@pytest.mark.parametrize(("finish", "status"), [("stop", "completed"), ("length", "incomplete")])
async def test_an_answer_without_a_token_is_one_empty_message(finish: str, status: str) -> None:
    """B059: opened and closed, streamed and not."""
    async with case({"chunks": [], "finish": finish}) as (live, _):
        stream = await live.stream(ask("x"))
        plain = (await live.create(ask("x"))).json()
        assert stream.events[-1]["type"] == f"response.{status}"
        for response in (stream.response, plain):
            assert response["status"] == status
            assert [item["type"] for item in response["output"]] == ["message"]
            assert text_of(response) == ""
            assert response["usage"]["output_tokens"] == 0


async def test_an_answer_that_is_cut_is_incomplete() -> None:
    """B060, B061: status, reason, terminal event, and the item says it too."""
    async with case(STORY) as (live, _):
        body = ask("Write a long story.", max_output_tokens=16)
        plain = (await live.create(body)).json()
        stream = await live.stream(body)
        assert stream.events[-1]["type"] == "response.incomplete"
        assert "response.output_text.done" in stream.types
        assert "response.content_part.done" in stream.types
        for response in (plain, stream.response):
            assert response["status"] == "incomplete"
            assert response["incomplete_details"] == {"reason": "max_output_tokens"}
            assert (response["error"], response["completed_at"]) == (None, None)
            assert response["usage"]["output_tokens"] == 16
            assert response["output"][-1]["status"] == "incomplete"


async def test_a_call_that_is_cut_keeps_what_was_made_of_it() -> None:
    """B061: arguments are not repaired; items before it are completed."""
    pieces = [*'{"city":"Rome and a long way beyond it"}']
    script = {
        "sequence": [
            {"text": "Calling."},
            {"tool_call": {"name": "get_weather", "arguments": pieces}},
        ]
    }
    async with case(script) as (live, _):
        body = ask("Call it", tools=[WEATHER], max_output_tokens=16)
        plain = (await live.create(body)).json()
        stream = await live.stream(body)
        for response in (plain, stream.response):
            statuses = [item["status"] for item in response["output"]]
            assert statuses == ["completed", "incomplete"]
            assert response["output"][1]["arguments"] == "".join(pieces[:15])


async def test_keys_of_the_end_are_there_from_the_beginning() -> None:
    """B062: incomplete_details, error and completed_at are always written."""
    async with case(OK) as (live, _):
        plain = (await live.create(ask(max_output_tokens=64))).json()
        assert (plain["incomplete_details"], plain["error"]) == (None, None)
        assert plain["completed_at"] >= plain["created_at"]
        stream = await live.stream(ask(max_output_tokens=64))
        for key in ("completed_at", "incomplete_details", "error"):
            assert stream.events[0]["response"][key] is None


async def test_a_stop_string_may_be_split_over_tokens() -> None:
    """B063: nothing of it is sent, and nothing is sent twice."""
    async with case({"chunks": ["The quick br", "own", " fox jumps"]}) as (live, _):
        stream = await live.stream(ask("x", stop=["own fox"]))
        plain = (await live.create(ask("x", stop=["own fox"]))).json()
        assert stream.text == text_of(stream.response) == text_of(plain) == "The quick br"
        assert not any("own" in event.get("delta", "") for event in stream.events)
        assert stream.response["status"] == plain["status"] == "completed"


async def test_the_engine_stops_when_the_client_leaves() -> None:
    """B065 (O13): within a few tokens, the slot is free, the stored status is cancelled."""
    script = {"chunks": ["again "], "infinite": True, "ms_per_token": 5}
    async with case(script, OK, slots=1) as (live, engine):
        async with connected(live) as wire:
            body = ask("Write a very long story.", stream=True, max_output_tokens=4000)
            await wire.send(body)
            id = await wire.opened()
            for _ in range(3):
                await wire.until(b"event: response.output_text.delta\n")
            seen = engine.calls[0].pieces
        await happens(engine.calls[0].ended)
        assert engine.calls[0].cancelled
        assert engine.calls[0].pieces < seen + 100
        assert (await live.create(ask("hi", max_output_tokens=16))).status_code == 200
        await ended(live, id)
        stored = (await live.http.get(f"/v1/responses/{id}")).json()
        assert stored["status"] == "cancelled"
        assert stored["output"][0]["status"] == "incomplete"


async def test_the_engine_stops_when_the_client_leaves_during_prefill() -> None:
    """B066 (O13): before the first token, which is then never made."""
    async with case({"infinite": True, "wait_for": "never"}, OK, slots=1) as (live, engine):
        async with connected(live) as wire:
            await wire.send(ask("x", stream=True, max_output_tokens=4000))
            await wire.opened()
            await happens(engine.calls[0].begun)
        await happens(engine.calls[0].ended)
        assert engine.calls[0].cancelled
        assert engine.calls[0].pieces == 0


async def test_a_client_that_leaves_the_queue_never_reaches_the_engine() -> None:
    """B066 (O13): its place is free again."""
    async with case({"chunks": ["slow"], "wait_for": "gate"}, OK, slots=1) as (live, engine):
        async with connected(live) as first:
            await first.send(ask("first", stream=True))
            await first.opened()
            async with connected(live) as second:
                await second.send(ask("second", stream=True))
                id = await second.opened()
                assert engine.slots.waiting == 1
            await ended(live, id)
            assert engine.slots.waiting == 0
            engine.open_gate("gate")
            await first.until(b"data: [DONE]\n\n")
        assert [call.prompt.turns[-1].content for call in engine.calls] == ["first"]
        assert (await live.http.get(f"/v1/responses/{id}")).json()["status"] == "cancelled"


async def test_a_stream_tells_proxies_not_to_hold_it_back() -> None:
    """B069: headers, and the connection serves a second request after the stream."""
    async with case(COUNT) as (live, _), connected(live) as wire:
        for _ in range(2):
            await wire.send(ask("Hi", stream=True))
            head = (await wire.until(b"\r\n\r\n")).decode().lower()
            assert "content-type: text/event-stream" in head
            assert "cache-control: no-cache" in head
            assert "x-accel-buffering: no" in head
            assert "transfer-encoding: chunked" in head
            assert "content-length" not in head
            assert "content-encoding" not in head
            await wire.until(b"data: [DONE]\n\n")
            await wire.until(b"0\r\n\r\n")


async def test_an_old_client_gets_a_body_that_ends_with_the_connection() -> None:
    """B069: HTTP/1.0 knows no chunks."""
    async with case(COUNT) as (live, _), connected(live) as wire:
        await wire.send(ask("Hi", stream=True), version="1.0")
        head, _, body = (await wire.rest()).partition(b"\r\n\r\n")
        assert b"transfer-encoding" not in head.lower()
        assert body.startswith(b"event: response.created\n")
        assert body.endswith(b"data: [DONE]\n\n")
