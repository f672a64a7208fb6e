"""Input items: which forms are taken and what the engine gets of them."""

from __future__ import annotations

import pytest

from tests.support.bodies import (
    CALLS_WEATHER,
    OK,
    WEATHER,
    Json,
    assistant,
    call,
    output,
    turns,
    user,
)
from tests.support.cases import refused
from tests.support.live import ask, scripted

pytestmark = pytest.mark.anyio


async def test_messages_have_four_roles_and_two_forms() -> None:
    """I1: a string or parts; `type` may be missing; the chat spelling of text is read."""
    parts = [{"type": "input_text", "text": "a"}, {"type": "text", "text": "b"}]
    items = [
        {"role": "system", "content": "s"},
        {"type": "message", "role": "developer", "content": [{"type": "input_text", "text": "d"}]},
        user(parts),
        assistant("x"),
        user("y"),
    ]
    async with scripted(OK) as (live, engine):
        assert (await live.create(ask(items))).status_code == 200
        assert turns(engine) == [
            ("system", "s"),
            ("developer", "d"),
            ("user", "a\nb"),
            ("assistant", "x"),
            ("user", "y"),
        ]


async def test_what_the_server_says_can_be_sent_back_unchanged() -> None:
    """I2: every kind of output item, as it came and without its optional keys."""
    every = {"reasoning": "hm", "chunks": ["Let me", " see."], **CALLS_WEATHER}
    async with scripted(every, OK) as (live, engine):
        first = (await live.create(ask("Rome?", tools=[WEATHER]))).json()
        result = output(first["output"][2]["call_id"], "sunny")
        whole = ask([user("Rome?"), *first["output"], result], tools=[WEATHER])
        assert (await live.create(whole)).status_code == 200
        bare = [
            {key: value for key, value in item.items() if key not in ("id", "status", "phase")}
            for item in first["output"]
        ]
        for part in bare[1]["content"]:
            del part["annotations"], part["logprobs"]
        assert (await live.create(ask([user("Rome?"), *bare, result], tools=[WEATHER]))).is_success
        chained = ask([result], tools=[WEATHER], previous_response_id=first["id"])
        assert (await live.create(chained)).status_code == 200
        assert engine.calls[1].prompt.turns == engine.calls[2].prompt.turns
        assert engine.calls[1].prompt.turns == engine.calls[3].prompt.turns


async def test_a_refusal_and_a_phase_are_taken_back() -> None:
    """I2: of other servers' answers."""
    items = [
        user("x"),
        {
            "type": "message",
            "id": "msg_1",
            "role": "assistant",
            "status": "incomplete",
            "phase": "commentary",
            "content": [
                {"type": "output_text", "text": "Well. ", "annotations": None, "logprobs": None},
                {"type": "refusal", "refusal": "No."},
            ],
        },
        user("y"),
    ]
    async with scripted(OK) as (live, engine):
        id = (await live.create(ask(items))).json()["id"]
        assert turns(engine)[1] == ("assistant", "Well. No.")
        page = (await live.http.get(f"/v1/responses/{id}/input_items?order=asc")).json()
        kept = page["data"][1]
        assert (kept["id"], kept["status"]) == ("msg_1", "incomplete")
        assert kept["phase"] == "commentary"
        assert "phase" not in page["data"][0]


async def test_roles_reach_the_engine_in_the_order_they_came() -> None:
    """I3, I4: late system messages, neighbours of one role and an assistant at the start."""
    items = [
        assistant("Hello."),
        user("a"),
        user("b"),
        {"role": "system", "content": "late"},
        {"role": "developer", "content": "later"},
        user("c"),
    ]
    async with scripted(OK) as (live, engine):
        assert (await live.create(ask(items, instructions="first"))).status_code == 200
        assert turns(engine) == [
            ("system", "first"),
            ("assistant", "Hello."),
            ("user", "a"),
            ("user", "b"),
            ("system", "late"),
            ("developer", "later"),
            ("user", "c"),
        ]


async def test_text_and_calls_that_follow_each_other_are_one_turn() -> None:
    """I5: an assistant's message and its calls; calls after their outputs begin a new turn."""
    items = [
        user("x"),
        assistant("Calling."),
        call("a"),
        call("b"),
        output("b", "2"),
        output("a", "1"),
        call("c"),
        output("c", "3"),
    ]
    async with scripted(OK) as (live, engine):
        assert (await live.create(ask(items, tools=[WEATHER]))).status_code == 200
        seen = engine.calls[0].prompt.turns
        assert [turn.role for turn in seen] == [
            "user",
            *("assistant", "tool", "tool"),
            *("assistant", "tool"),
        ]
        assert seen[1].content == "Calling."
        assert [each.call_id for each in seen[1].calls] == ["a", "b"]
        assert [turn.content for turn in seen if turn.role == "tool"] == ["1", "2", "3"]


@pytest.mark.parametrize(
    ("given", "seen"),
    [
        ("plain", "plain"),
        ("", ""),
        ([], ""),
        ([{"type": "input_text", "text": "a"}, {"type": "output_text", "text": "b"}], "a\nb"),
    ],
)
async def test_an_output_is_a_string_or_parts(given: str | list[Json], seen: str) -> None:
    """I6."""
    items = [user("x"), call("a"), output("a", given)]
    async with scripted(OK) as (live, engine):
        assert (await live.create(ask(items, tools=[WEATHER]))).status_code == 200
        assert turns(engine)[-1] == ("tool", seen)


async def test_an_output_without_a_call_is_named() -> None:
    """I7: the sentence that clients look for."""
    async with scripted(OK) as (live, _):
        answer = await live.create(ask([output("call_1", "x")]))
        message = refused(answer, "input[0].call_id")
        assert message == "No tool call found for function call output with call_id call_1."


async def test_a_call_left_open_by_the_chain_may_not_be_opened_again() -> None:
    """I7: two open calls of one id, one of them in the history."""
    async with scripted({"tool_calls": [{"name": "f", "call_id": "c1"}]}, OK) as (live, _):
        id = (await live.create(ask("x", tools=[WEATHER]))).json()["id"]
        answer = await live.create(ask([call("c1")], previous_response_id=id))
        assert "duplicated" in refused(answer, "input[0].call_id")


async def test_reasoning_belongs_to_the_turn_that_follows() -> None:
    """I8: content wins over summary, and neither becomes text."""
    summary = [{"type": "summary_text", "text": "short"}]
    content = [{"type": "reasoning_text", "text": "long"}]
    items = [
        user("x"),
        {"type": "reasoning", "summary": summary},
        assistant("a"),
        user("y"),
        {"type": "reasoning", "summary": summary, "content": content},
        call("c"),
        output("c", "z"),
    ]
    async with scripted(OK) as (live, engine):
        assert (await live.create(ask(items, tools=[WEATHER]))).status_code == 200
        seen = engine.calls[0].prompt.turns
        assert [turn.reasoning for turn in seen] == ["", "short", "", "long", ""]
        assert "short" not in seen[1].content


@pytest.mark.parametrize("form", [{"type": "item_reference"}, {}, {"type": None}])
async def test_a_reference_stands_for_an_item_that_was_stored(form: Json) -> None:
    """I9: of input or output, with `type` or without; an unknown one is 404."""
    async with scripted({"chunks": ["said"]}, OK) as (live, engine):
        first = (await live.create(ask("asked"))).json()
        path = f"/v1/responses/{first['id']}/input_items"
        asked = (await live.http.get(path)).json()["data"][0]["id"]
        items = [{**form, "id": asked}, {**form, "id": first["output"][0]["id"]}, user("x")]
        assert (await live.create(ask(items))).status_code == 200
        assert turns(engine) == [("user", "asked"), ("assistant", "said"), ("user", "x")]
        answer = await live.create(ask([{**form, "id": "msg_0"}, user("x")]))
        refused(answer, "input[0].id", status=404)


async def test_hosted_calls_and_their_outputs_become_neutral_text() -> None:
    """I11: an output is told as from outside, a call as the assistant's."""
    items = [
        user("x"),
        {"type": "local_shell_call", "id": "s", "call_id": "c", "action": {"command": ["ls"]}},
        {"type": "local_shell_call_output", "id": "o", "output": "a.txt"},
        {"type": "mcp_approval_response", "approval_request_id": "r", "approve": True},
        user("y"),
    ]
    async with scripted(OK) as (live, engine):
        assert (await live.create(ask(items))).status_code == 200
        seen = turns(engine)
        assert [role for role, _ in seen] == ["user", "assistant", "user", "user", "user"]
        assert "ls" in seen[1][1]
        assert "a.txt" in seen[2][1]


async def test_an_unknown_item_type_is_named() -> None:
    """I11: 400."""
    async with scripted(OK) as (live, _):
        answer = await live.create(ask([{"type": "telepathy", "role": "user", "content": "x"}]))
        assert "telepathy" in refused(answer, "input[0]")
