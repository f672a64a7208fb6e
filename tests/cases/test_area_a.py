"""Public bug reports, area A: forms of input and histories that clients send back.

What a chat template makes of the turns is tested with the templates; here it counts which
turns reach the engine.
"""

from __future__ import annotations

import asyncio
import copy
import json
from typing import Any

import pytest

from tests.support.bodies import (
    CALLS_WEATHER,
    OK,
    PNG,
    TIME,
    WEATHER,
    Json,
    assistant,
    call,
    image,
    output,
    turns,
    user,
)
from tests.support.cases import case, refused
from tests.support.live import ask
from tests.support.wire import connected

pytestmark = pytest.mark.anyio

TEXT = {"type": "output_text", "text": "A"}


async def test_an_assistant_turn_may_come_back_in_any_of_its_forms() -> None:
    """B001: role and content are enough; id, status, annotations change nothing."""
    forms = [
        assistant([TEXT]),
        {"type": "message", **assistant([TEXT])},
        {"type": "message", "id": "msg_x", "status": "completed", **assistant([TEXT])},
        assistant([{**TEXT, "annotations": [], "logprobs": []}]),
        assistant("A"),
    ]
    async with case(OK) as (live, engine):
        for form in forms:
            tail = user([{"type": "input_text", "text": "Say B."}])
            answer = await live.create(ask([user("Say A."), form, tail]))
            assert answer.status_code == 200, answer.text
            assert turns(engine) == [("user", "Say A."), ("assistant", "A"), ("user", "Say B.")]
            assert engine.calls[-1].prompt == engine.calls[0].prompt


async def test_instructions_lead_and_a_late_developer_item_keeps_its_place() -> None:
    """B002: nothing is refused or reordered; the template decides what it can place."""
    developer = {"role": "developer", "content": "Answer in one word."}
    body = ask([user("hi"), developer, user("Colour of grass?")], instructions="Be brief.")
    async with case(OK) as (live, engine):
        assert (await live.create(body)).status_code == 200
        assert turns(engine) == [
            ("system", "Be brief."),
            ("user", "hi"),
            ("developer", "Answer in one word."),
            ("user", "Colour of grass?"),
        ]
        assert (await live.stream(body)).types[0] == "response.created"


async def test_calls_of_hosted_tools_become_neutral_text_and_unknown_items_are_refused() -> None:
    """B004: web_search_call is told to the model, made_up_item is 400 with its place."""
    search = {
        "type": "web_search_call",
        "id": "ws_1",
        "status": "completed",
        "action": {"type": "search", "query": "x"},
    }
    async with case(OK) as (live, engine):
        answer = await live.create(ask([user("hi"), search, user("go on")]))
        assert answer.status_code == 200
        role, text = turns(engine)[1]
        assert role == "assistant"
        assert text.startswith("[web_search_call completed]")
        answer = await live.create(ask([user("hi"), {"type": "made_up_item", "x": 1}]))
        assert "made_up_item" in refused(answer, "input[1]")
        assert len(answer.content) < 4096


async def test_an_image_between_texts_is_refused_at_its_place_by_a_text_model() -> None:
    """B007: the error names the image part, not the union it is in."""
    parts = [
        {"type": "input_text", "text": "Before."},
        {**image(f"data:image/png;base64,{PNG}"), "detail": "auto"},
        {"type": "input_text", "text": "Which colour?"},
    ]
    async with case(OK) as (live, engine):
        answer = await live.create(ask([user(parts)]))
        refused(answer, "input[0].content[1].image_url", code="unsupported_content")
        parts[1] = image({"url": f"data:image/png;base64,{PNG}"})
        refused(await live.create(ask([user(parts)])), "input[0].content[1].image_url")
        assert engine.calls == []


@pytest.mark.parametrize("tail", ["", ",@@@", ",", "," + PNG[:40]])
async def test_a_broken_data_url_is_the_fault_of_the_client(tail: str) -> None:
    """B008: no 500, no base64 in the message."""
    async with case(OK) as (live, _):
        answer = await live.create(ask([user([image(f"data:image/png;base64{tail}")])]))
        message = refused(answer, "input[0].content[0].image_url", code="unsupported_content")
        assert "base64" not in message


async def test_no_url_of_an_image_is_ever_fetched() -> None:
    """B009: loopback in any spelling, link-local and file URLs are refused unopened."""
    connections = 0

    def count(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal connections
        connections += 1
        writer.close()

    canary = await asyncio.start_server(count, "127.0.0.1", 0)
    port = canary.sockets[0].getsockname()[1]
    async with canary, case(OK) as (live, engine):
        for url in (
            f"http://127.0.0.1:{port}/a.png",
            "http://169.254.169.254/latest/",
            f"http://[::ffff:127.0.0.1]:{port}/a.png",
            f"http://2130706433:{port}/a.png",
            f"http://localhost:{port}/a.png",
            "file:///etc/hostname",
        ):
            answer = await live.create(ask([user([image(url)])]))
            refused(answer, "input[0].content[0].image_url", code="unsupported_content")
        assert connections == 0
        assert engine.calls == []


async def test_a_tool_output_may_be_a_list_of_parts() -> None:
    """B011: texts are joined in order; an image is refused at its place."""
    texts = [{"type": "input_text", "text": "sunny"}, {"type": "output_text", "text": "21C"}]
    async with case(OK) as (live, engine):
        history = [user("Weather in Rome?"), call("c1"), output("c1", texts)]
        assert (await live.create(ask(history, tools=[WEATHER]))).status_code == 200
        assert turns(engine)[-1] == ("tool", "sunny\n21C")
        parts = [{"type": "input_text", "text": "chart"}, image(f"data:image/png;base64,{PNG}")]
        answer = await live.create(
            ask([user("Look"), call("c1"), output("c1", parts)], tools=[WEATHER])
        )
        refused(answer, "input[2].output[1]", code="unsupported_content")


async def test_parallel_calls_are_one_turn_and_their_outputs_follow_it() -> None:
    """B012: grouping is kept, outputs come in the order of the calls."""
    history = [
        user("Both please"),
        call("a"),
        call("b", "get_time", '{"zone":"CET"}'),
        output("b", "12:00"),
        output("a", "sunny"),
        assistant("Sunny, noon."),
        user("And Oslo?"),
        call("c", arguments='{"city":"Oslo"}'),
        output("c", "rain"),
    ]
    async with case(OK) as (live, engine):
        answer = await live.create(ask(history, tools=[WEATHER, TIME]))
        assert answer.status_code == 200
        assert turns(engine) == [
            ("user", "Both please"),
            ("assistant", ""),
            ("tool", "sunny"),
            ("tool", "12:00"),
            ("assistant", "Sunny, noon."),
            ("user", "And Oslo?"),
            ("assistant", ""),
            ("tool", "rain"),
        ]
        seen = engine.calls[0].prompt.turns
        assert [item.call_id for item in seen[1].calls] == ["a", "b"]
        assert [turn.call_id for turn in seen[2:4]] == ["a", "b"]
        assert [turn.name for turn in seen[2:4]] == ["get_weather", "get_time"]
        assert [item.call_id for item in seen[6].calls] == [seen[7].call_id] == ["c"]


async def test_an_output_needs_its_call_in_the_input_or_in_the_chain() -> None:
    """B014: an orphan is 400; a call in an earlier response is found."""
    async with case(CALLS_WEATHER, OK) as (live, engine):
        answer = await live.create(ask([user("hi"), output("call_ghost", "x")]))
        message = refused(answer, "input[1].call_id")
        assert message.startswith("No tool call found")
        assert "call_ghost" in message
        assert engine.calls == []
        first = (await live.create(ask("Rome?", tools=[WEATHER]))).json()
        made = first["output"][0]["call_id"]
        second = ask([output(made, "sunny")], tools=[WEATHER], previous_response_id=first["id"])
        assert (await live.create(second)).status_code == 200
        assert turns(engine) == [("user", "Rome?"), ("assistant", ""), ("tool", "sunny")]


async def test_a_call_without_an_output_is_shown_with_an_empty_one() -> None:
    """B015: the call stays, its result is empty, and a later output takes that place."""
    history = [user("Weather?"), call("a"), user("Never mind, say OK.")]
    async with case(OK) as (live, engine):
        first = await live.create(ask(history, tools=[WEATHER]))
        assert first.status_code == 200
        expected = [
            ("user", "Weather?"),
            ("assistant", ""),
            ("tool", ""),
            ("user", "Never mind, say OK."),
        ]
        assert turns(engine) == expected
        late = ask([output("a", "sunny")], previous_response_id=first.json()["id"])
        assert (await live.create(late)).status_code == 200
        expected[2] = ("tool", "sunny")
        assert turns(engine) == [*expected, ("assistant", "ok")]


async def test_two_open_calls_must_not_share_an_id() -> None:
    """B016: 400 at the second call."""
    second = call("call_0", "get_time", '{"zone":"CET"}')
    history = [user("x"), call("call_0"), second, output("call_0", "sunny")]
    async with case(OK) as (live, engine):
        answer = await live.create(ask(history, tools=[WEATHER, TIME]))
        message = refused(answer, "input[2].call_id")
        assert "call_0" in message
        assert "duplicated" in message
        assert engine.calls == []


async def test_an_id_may_be_used_again_once_its_call_is_answered() -> None:
    """B017: in one input, and when the first pair comes from the chain."""
    first = [user("Rome?"), call("get_weather:0"), output("get_weather:0", "sunny")]
    second = [
        user("Oslo?"),
        call("get_weather:0", arguments='{"city":"Oslo"}'),
        output("get_weather:0", "rain"),
    ]
    async with case({"chunks": ["Sunny."]}) as (live, engine):
        whole = ask([*first, assistant("Sunny."), *second], tools=[WEATHER])
        assert (await live.create(whole)).status_code == 200
        assert [text for role, text in turns(engine) if role == "tool"] == ["sunny", "rain"]
        parent = (await live.create(ask(first, tools=[WEATHER]))).json()["id"]
        chained = ask(second, tools=[WEATHER], previous_response_id=parent)
        assert (await live.create(chained)).status_code == 200
        assert engine.calls[2].prompt.turns == engine.calls[0].prompt.turns


@pytest.mark.parametrize("arguments", ['{"city": "Ro', "", "null"])
async def test_arguments_of_an_old_call_need_not_be_an_object(arguments: str) -> None:
    """B018, B019: cut off, empty and null arguments are passed on; the result stays paired."""
    history = [user("Rome?"), call("a", arguments=arguments), output("a", "no"), user("Say OK.")]
    async with case(OK) as (live, engine):
        assert (await live.create(ask(history, tools=[WEATHER]))).status_code == 200
        assert engine.calls[0].prompt.turns[1].calls[0].arguments == arguments
        assert engine.calls[0].prompt.turns[2].call_id == "a"


@pytest.mark.parametrize("stream", [False, True])
async def test_a_foreign_encrypted_content_is_refused(stream: bool) -> None:
    """B022: 400 invalid_encrypted_content, streamed and not."""
    reasoning = {
        "type": "reasoning",
        "id": "rs_9",
        "summary": [{"type": "summary_text", "text": "s"}],
        "encrypted_content": "gAAAAopaque",
    }
    async with case(OK) as (live, _):
        history = [user("q"), reasoning, assistant("a"), user("next")]
        answer = await live.create(ask(history, stream=stream))
        refused(answer, "input[1].encrypted_content", code="invalid_encrypted_content")


@pytest.mark.parametrize("stream", [False, True])
async def test_there_must_be_something_to_answer(stream: bool) -> None:
    """B025: missing, null, empty list, empty text, empty message; instructions are enough."""
    missing = {"model": "scripted", "stream": stream}
    async with case(OK) as (live, engine):
        refused(await live.create(missing), "input")
        for empty in (None, [], "", [user("")], [user([])]):
            refused(await live.create({**missing, "input": empty}), "input")
        assert engine.calls == []
        first = await live.create({**missing, "instructions": "Say hi.", "stream": False})
        assert first.status_code == 200
        more = {**missing, "previous_response_id": first.json()["id"]}
        assert (await live.create(more)).status_code == 200


NULLS = [
    "instructions",
    "metadata",
    "tools",
    "tool_choice",
    "parallel_tool_calls",
    "temperature",
    "top_p",
    "text",
    "reasoning",
    "include",
    "stream",
    "store",
    "previous_response_id",
    "conversation",
    "truncation",
    "user",
    "background",
    "max_tool_calls",
    "top_logprobs",
    "max_output_tokens",
]


async def test_null_is_the_same_as_leaving_a_field_out() -> None:
    """B026: the effective values in the response are equal, also when streamed."""
    async with case(OK) as (live, _):
        plain = (await live.create(ask())).json()
        body = ask(**dict.fromkeys(NULLS))
        nulls = (await live.create(body)).json()
        streamed = (await live.stream(body)).response
        varying = ("id", "created_at", "completed_at", "output")
        for response in (plain, nulls, streamed):
            for key in varying:
                response.pop(key)
        assert plain == nulls == streamed
        assert (plain["tools"], plain["metadata"], plain["tool_choice"]) == ([], {}, "auto")
        assert plain["parallel_tool_calls"] is True


async def test_fields_of_clients_are_echoed_or_ignored_and_named() -> None:
    """B027: what means nothing here is told in a header, also a misspelt name."""
    body = ask(
        client_metadata={"x": "1"},
        prompt_cache_key="k",
        prompt_cache_retention="in-memory",
        safety_identifier="s",
        service_tier="auto",
        user="u",
        access_programs=[],
        max_ouput_tokens=5,
    )
    async with case(OK) as (live, _):
        answer = await live.create(body)
        assert answer.status_code == 200
        echoed = answer.json()
        assert (echoed["prompt_cache_key"], echoed["safety_identifier"]) == ("k", "s")
        assert (echoed["user"], echoed["service_tier"]) == ("u", "default")
        assert answer.headers["antiphon-ignored"].split(", ") == [
            "client_metadata",
            "prompt_cache_retention",
            "access_programs",
            "max_ouput_tokens",
        ]


async def test_a_validation_error_does_not_echo_the_input() -> None:
    """B028: one fault, with its path, in a small body."""
    part: Json = {"type": "input_text", "text": ["not", "a", "string"]}
    body = ask([user([copy.deepcopy(part) for _ in range(50)]) for _ in range(20)])
    async with case(OK) as (live, _):
        answer = await live.create(body)
        refused(answer, "input[0].content[0].text")
        assert len(answer.content) < 1000


@pytest.mark.parametrize(
    ("field", "value", "param"),
    [
        ("reasoning", {"effort": "banana"}, "reasoning.effort"),
        ("tool_choice", "sometimes", "tool_choice"),
        ("stream", "yes", "stream"),
    ],
)
async def test_an_error_names_the_field(field: str, value: Any, param: str) -> None:
    """B029: 400 with param."""
    async with case(OK) as (live, _):
        refused(await live.create(ask(**{field: value})), param)


async def test_a_body_that_is_cut_off_is_called_invalid_json() -> None:
    """B029: 400 without a param."""
    async with case(OK) as (live, _), connected(live) as wire:
        await wire.send(b'{"model":')
        status, _, body = await wire.answer()
        assert status == 400
        error = json.loads(body)["error"]
        assert "not valid JSON" in error["message"]
        assert error["param"] is None


async def test_arguments_reach_the_engine_as_they_were_sent() -> None:
    """B019: a tool without parameters can be called in a history."""
    tool = {"type": "function", "name": "list_books"}
    history = [user("list"), call("a", "list_books", ""), output("a", "[]"), user("ok?")]
    async with case(OK) as (live, engine):
        assert (await live.create(ask(history, tools=[tool]))).status_code == 200
        assert engine.calls[0].prompt.tools[0].parameters is None
        assert engine.calls[0].prompt.turns[1].calls[0].arguments == ""
