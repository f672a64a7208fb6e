"""The response object and the events of its stream, as clients get them."""

from __future__ import annotations

import re
from typing import Any

import pytest

from tests.support import spec
from tests.support.bodies import CALLS_WEATHER, OK, WEATHER, Json, text_of
from tests.support.live import ask, error_of, scripted
from tests.support.wire import connected

pytestmark = pytest.mark.anyio

EVERY: Json = {"reasoning": ["h", "m"], "chunks": ["Let me", " see."], **CALLS_WEATHER}


async def test_the_response_fits_the_published_schema() -> None:
    """O1: in JSON, in every lifecycle event and when read back; optional keys are absent."""
    async with scripted(EVERY) as (live, _):
        body = ask("x", tools=[WEATHER], instructions="i", metadata={"a": "b"}, user="u")
        plain = (await live.create(body)).json()
        stream = await live.stream(body)
        stored = (await live.http.get(f"/v1/responses/{plain['id']}")).json()
        responses = [event["response"] for event in stream.events if "response" in event]
        assert len(responses) == 3
        for response in (plain, stored, *responses):
            spec.check("ResponseResource", response)
            assert response["background"] is False
            assert "conversation" not in response
            assert "phase" not in str(response)


async def test_only_a_completed_response_has_a_time_of_completion() -> None:
    """O2, O5: not an incomplete, a cancelled or a failed one."""
    cut = {"chunks": ["a", "b"], "finish": "length"}
    broken = {"chunks": ["a", "b"], "error_after": 1}
    async with scripted(OK, cut, broken) as (live, _):
        ends = [(await live.stream(ask())).response for _ in range(3)]
        assert [end["status"] for end in ends] == ["completed", "incomplete", "failed"]
        assert ends[0]["completed_at"] >= ends[0]["created_at"]
        assert (ends[1]["completed_at"], ends[2]["completed_at"]) == (None, None)
        assert ends[1]["incomplete_details"] == {"reason": "max_output_tokens"}
        assert [end["output"][0]["status"] for end in ends] == [
            "completed",
            "incomplete",
            "incomplete",
        ]


async def test_ids_have_their_prefix_and_are_never_made_twice() -> None:
    """O4: random hex behind the kind."""
    async with scripted(EVERY) as (live, _):
        found: list[str] = []
        for _ in range(2):
            response = (await live.create(ask("x", tools=[WEATHER]))).json()
            call = response["output"][2]
            found += [response["id"], *(item["id"] for item in response["output"])]
            found.append(call["call_id"])
        assert [id.partition("_")[0] for id in found] == ["resp", "rs", "msg", "fc", "call"] * 2
        assert all(re.fullmatch(r"[a-z]+_[0-9a-f]{32}", id) for id in found)
        assert len(set(found)) == len(found)


async def test_an_item_has_the_same_bytes_everywhere() -> None:
    """O4: in output_item.done, in the terminal event and in the stored response."""
    async with scripted(EVERY) as (live, _):
        raw = (await live.create(ask("x", tools=[WEATHER], stream=True))).content
        done = re.findall(rb'event: response.output_item.done\ndata: .*?"item":(\{.*\})\}\n', raw)
        assert len(done) == 3
        final = raw.split(b"event: response.completed\n")[1]
        id = re.findall(rb'"id":"(resp_\w+)"', raw)[0].decode()
        stored = (await live.http.get(f"/v1/responses/{id}")).content
        for item in done:
            assert item in final
            assert item in stored


async def test_frames_are_plain_and_the_stream_says_when_it_ends() -> None:
    """O6: event, one data line, `\\n`, and `[DONE]` last."""
    async with scripted({"chunks": ["two\nlines\r\n", "\u2028", '"']}) as (live, _):
        raw = (await live.create(ask(stream=True))).content
        for frame in raw.split(b"\n\n")[:-2]:
            event, data = frame.split(b"\n")
            assert event.startswith(b"event: response.")
            assert data.startswith(b"data: {")
            assert b'"type":"%b"' % event[7:] in data
            assert b"\r" not in data
        assert raw.endswith(b"\n\ndata: [DONE]\n\n")
        assert raw.count(b"[DONE]") == 1
        assert (await live.stream(ask())).text == 'two\nlines\r\n\u2028"'


async def test_a_frame_is_never_cut_in_two() -> None:
    """O6: every chunk of the transfer begins with a frame and ends with one."""
    script = {"chunks": ["x" * 500] * 50}
    async with scripted(script) as (live, _), connected(live) as wire:
        await wire.send(ask(stream=True), headers={"Connection": "close"})
        await wire.until(b"\r\n\r\n")
        body = await wire.rest()
        chunks = 0
        while body:
            size, _, rest = body.partition(b"\r\n")
            chunk, body = rest[: int(size, 16)], rest[int(size, 16) + 2 :]
            if chunk:
                chunks += 1
                assert chunk.startswith((b"event: ", b"data: [DONE]"))
                assert chunk.endswith(b"\n\n")
        assert chunks >= 2


async def test_numbers_and_order_hold_for_every_kind_of_item() -> None:
    """O7, O8: reasoning, message, call; each opened, filled and closed before the next."""
    async with scripted(EVERY) as (live, _):
        stream = await live.stream(ask("x", tools=[WEATHER]))
        assert stream.types == [
            "response.created",
            "response.in_progress",
            "response.output_item.added",
            "response.content_part.added",
            "response.reasoning_text.delta",
            "response.reasoning_text.done",
            "response.content_part.done",
            "response.output_item.done",
            "response.output_item.added",
            "response.content_part.added",
            "response.output_text.delta",
            "response.output_text.done",
            "response.content_part.done",
            "response.output_item.done",
            "response.output_item.added",
            "response.function_call_arguments.delta",
            "response.function_call_arguments.done",
            "response.output_item.done",
            "response.completed",
        ]


async def test_a_call_without_arguments_has_an_empty_object() -> None:
    """O8, T2: `{}` is streamed as a delta too."""
    async with scripted({"tool_calls": [{"name": "get_weather"}]}) as (live, _):
        stream = await live.stream(ask("x", tools=[WEATHER]))
        assert stream.response["output"][0]["arguments"] == "{}"


async def test_open_responses_clients_get_its_names_of_reasoning_events() -> None:
    """O9: by their header; nothing else changes."""
    async with scripted(EVERY) as (live, _):
        headers = {"OpenResponses-Version": "2026-04-24"}
        theirs = await live.stream(ask("x", tools=[WEATHER]), headers=headers)
        ours = await live.stream(ask("x", tools=[WEATHER]))
        renamed = [name.replace("reasoning_text.d", "reasoning.d") for name in ours.types]
        assert theirs.types == renamed
        assert "response.reasoning.delta" in theirs.types


@pytest.mark.parametrize(
    "script",
    [
        {"chunks": ["one ", "", "two", "  ", "three\n"]},
        {"bytes_hex": ["e6bc", "a2", "f09f90b1", "0a"]},
        {"reasoning": ["a", "b"], "chunks": ["c"]},
        {"chunks": ["only spaces: ", "   "], "finish": "length"},
    ],
)
async def test_a_stream_says_what_plain_json_says(script: Json) -> None:
    """O10: the text, item by item."""
    async with scripted(script) as (live, _):
        plain = (await live.create(ask())).json()
        stream = await live.stream(ask())
        assert stream.text == text_of(stream.response) == text_of(plain)

        def shown(response: Json) -> list[tuple[Any, ...]]:
            return [(i["type"], i["status"], i["content"]) for i in response["output"]]

        assert shown(plain) == shown(stream.response)


async def test_a_failure_in_the_middle_is_told_by_one_event() -> None:
    """O11: response.failed with the full object, what was said so far and a generic message."""
    async with scripted({"chunks": ["a", "b"], "error_after": 1}, OK) as (live, _):
        stream = await live.stream(ask())
        assert stream.events[-1]["type"] == "response.failed"
        assert stream.response["error"] == {
            "code": "server_error",
            "message": "The generation failed.",
        }
        assert text_of(stream.response) == "a"
        id = stream.response["id"]
        assert (await live.http.get(f"/v1/responses/{id}")).json() == stream.response


async def test_a_failure_without_a_stream_is_an_http_error() -> None:
    """O11: 500 in the envelope, without detail."""
    async with scripted({"chunks": ["a", "b"], "error_after": 1}, OK) as (live, _):
        answer = await live.create(ask())
        assert answer.status_code == 500
        error = error_of(answer)
        assert (error["type"], error["code"]) == ("server_error", "server_error")
        assert "script" not in answer.text
        assert (await live.create(ask())).status_code == 200


async def test_the_body_alone_chooses_a_stream() -> None:
    """O12: whatever Accept says."""
    async with scripted(OK) as (live, _):
        plain = await live.create(ask(), headers={"Accept": "text/event-stream"})
        assert plain.headers["content-type"] == "application/json"
        await live.stream(ask(), headers={"Accept": "application/json"})


async def test_headers_and_the_first_events_go_out_before_prefill() -> None:
    """O12: while the engine is silent, also while the request still waits for a slot."""
    async with (
        scripted({"wait_for": "gate", **OK}, slots=1) as (live, engine),
        connected(live) as first,
        connected(live) as second,
    ):
        for wire in (first, second):
            await wire.send(ask(stream=True))
            head = await wire.until(b"event: response.in_progress\n")
            assert b"HTTP/1.1 200" in head
            assert b"event: response.created\n" in head
        assert (len(engine.calls), engine.slots.waiting) == (1, 1)
        engine.open_gate("gate")
        for wire in (first, second):
            await wire.until(b"data: [DONE]\n\n")
