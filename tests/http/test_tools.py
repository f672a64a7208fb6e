"""Tools over HTTP: what may be called, how often, and how arguments stream (contract T1-T6)."""

from __future__ import annotations

import json
from typing import Any

import pytest

from antiphon.engine.types import Capabilities
from antiphon.engines.scripted import ScriptedEngine
from tests.support.bodies import CALLS_WEATHER, OK, ROME, TIME, WEATHER, Json, call, output, user
from tests.support.cases import refused
from tests.support.live import ask, running, scripted

pytestmark = pytest.mark.anyio

SCHEMA: Json = {"type": "json_schema", "name": "n", "schema": {"type": "object"}}


def written(city: str) -> str:
    """A call as a model writes it."""
    call = f'{{"name": "get_weather", "arguments": {{"city": "{city}"}}}}'
    return f"<tool_call>\n{call}\n</tool_call>"


THREE: Json = {"chunks": ["Well. ", written("A"), "\n", written("B"), written("C"), " Bye."]}


@pytest.mark.parametrize(
    ("more", "count"),
    [
        ({}, 3),
        ({"max_tool_calls": 2}, 2),
        ({"max_tool_calls": 5}, 3),
        ({"parallel_tool_calls": False}, 1),
        ({"parallel_tool_calls": False, "max_tool_calls": 2}, 1),
    ],
)
async def test_there_are_not_more_calls_than_allowed(more: Json, count: int) -> None:
    """T4: in the stream and in the result; what follows the last one is not wanted."""
    async with scripted(THREE) as (live, _):
        body = ask(tools=[WEATHER], **more)
        plain = (await live.create(body)).json()
        streamed = await live.stream(body)
        for response in (plain, streamed.response):
            calls = [item for item in response["output"] if item["type"] == "function_call"]
            assert [json.loads(item["arguments"])["city"] for item in calls] == ["A", "B", "C"][
                :count
            ]
            assert response["status"] == "completed"
            assert response["max_tool_calls"] == more.get("max_tool_calls")
            assert response["parallel_tool_calls"] is more.get("parallel_tool_calls", True)
        assert streamed.text == ("Well." if count < 3 else "Well.Bye.")


@pytest.mark.parametrize(
    ("choice", "tools"),
    [
        ("required", []),
        ({"type": "function", "name": "get_weather"}, []),
        ({"type": "function", "name": "ghost"}, [WEATHER]),
        ({"type": "allowed_tools", "mode": "auto", "tools": []}, [WEATHER]),
        ({"type": "function"}, [WEATHER]),
        ("sometimes", [WEATHER]),
        (7, [WEATHER]),
    ],
)
async def test_a_choice_that_cannot_be_met_is_refused(choice: Any, tools: list[Json]) -> None:
    """T3: before anything is generated."""
    async with scripted(OK) as (live, engine):
        answer = await live.create(ask(tools=tools, tool_choice=choice))
        assert answer.status_code == 400
        assert answer.json()["error"]["param"].startswith("tool_choice")
        assert engine.calls == []


@pytest.mark.parametrize(
    "choice",
    [
        "required",
        {"type": "function", "name": "get_weather"},
        {
            "type": "allowed_tools",
            "mode": "required",
            "tools": [{"type": "function", "name": "get_weather"}],
        },
    ],
    ids=["required", "named", "allowed"],
)
@pytest.mark.parametrize("format", [SCHEMA, {"type": "json_object"}], ids=["schema", "object"])
async def test_a_demanded_call_contradicts_a_demanded_document(choice: Any, format: Json) -> None:
    """T3: 400; a free choice does not."""
    async with scripted({"chunks": ["{}"]}) as (live, engine):
        body = ask(tools=[WEATHER], text={"format": format})
        refused(await live.create({**body, "tool_choice": choice}), "tool_choice")
        assert engine.calls == []
        for free in ("auto", "none"):
            assert (await live.create({**body, "tool_choice": free})).status_code == 200


async def test_two_tools_must_not_share_a_name() -> None:
    """T1: 400 at the second."""
    async with scripted(OK) as (live, _):
        answer = await live.create(ask(tools=[WEATHER, TIME, {**WEATHER, "strict": False}]))
        assert "get_weather" in refused(answer, "tools[2].name")


@pytest.mark.parametrize(
    "kind",
    [
        "web_search",
        "file_search",
        "computer_use_preview",
        "code_interpreter",
        "image_generation",
        "mcp",
        "custom",
        "apply_patch",
        "function_shell",
        "local_shell",
        "namespace",
        "tool_search",
    ],
)
async def test_any_other_kind_of_tool_is_refused_by_name(kind: str) -> None:
    """T2: type and place, under the strict policy."""
    async with scripted(OK) as (live, _):
        tool = {"type": kind, "name": "n", **({"tools": []} if kind == "namespace" else {})}
        answer = await live.create(ask(tools=[WEATHER, tool]))
        message = refused(answer, "tools[1].type", code="unsupported_feature")
        assert kind in message


STREAMED = {
    "hermes": [
        '<tool_call>{"name": "get_weather", "arguments": {"ci',
        'ty": "Ro',
        'me"}}',
        "</tool_call>",
    ],
    "mistral": ['[TOOL_CALLS]get_weather[ARGS]{"ci', 'ty": "Ro', 'me"}'],
    "llama3": ['{"name": "get_weather", "parameters": {"ci', 'ty": "Ro', 'me"}', "}"],
    "qwen_coder": [
        "<tool_call>\n<function=get_weather>\n<parameter=city>\n",
        "Ro",
        "me",
        "\n</parameter>\n</function>\n",
        "</tool_call>",
    ],
}
WHOLE = {
    "glm": [
        "<tool_call>get_weather<arg_key>city</arg_key>",
        "<arg_value>Ro",
        "me</arg_value></tool_call>",
    ],
    "pythonic": ['[get_weather(city="Ro', 'me")]'],
}


@pytest.mark.parametrize("format", STREAMED)
async def test_arguments_stream_while_they_are_generated(format: str) -> None:
    """T5: several deltas, increments of the final arguments."""
    async with scripted({"chunks": STREAMED[format], "tool_format": format}) as (live, _):
        streamed = await live.stream(ask(tools=[WEATHER]))
        deltas = [e["delta"] for e in streamed.events if e["type"].endswith("arguments.delta")]
        (item,) = streamed.response["output"]
        assert len(deltas) > 1
        assert "".join(deltas) == item["arguments"]
        assert json.loads(item["arguments"]) == {"city": "Rome"}


@pytest.mark.parametrize("format", WHOLE)
async def test_arguments_of_other_formats_arrive_whole(format: str) -> None:
    """T5: at the end, and the same without a stream."""
    async with scripted({"chunks": WHOLE[format], "tool_format": format}) as (live, _):
        streamed = await live.stream(ask(tools=[WEATHER]))
        deltas = [e["delta"] for e in streamed.events if e["type"].endswith("arguments.delta")]
        assert [json.loads(delta) for delta in deltas] == [{"city": "Rome"}]
        (item,) = (await live.create(ask(tools=[WEATHER]))).json()["output"]
        assert item["arguments"] == deltas[0]


@pytest.mark.parametrize(
    "said",
    [
        "Use <tool_call> to call.",
        "A list: [TOOL",
        "<tool_call>",
        '<tool_call>{"name": "get_weather"',
        "<tool_call>{}</tool_call>",
        "<tool_call>\n\n</tool_call>",
    ],
)
async def test_what_only_looks_like_a_call_is_text(said: str) -> None:
    """T6: nothing of it is lost, however it is cut."""
    async with scripted({"chunks": [said]}, {"chunks": list(said)}) as (live, _):
        for _ in range(2):
            streamed = await live.stream(ask(tools=[WEATHER]))
            assert [item["type"] for item in streamed.response["output"]] == ["message"]
            assert streamed.text == said


async def test_a_call_and_its_result_are_sent_back_and_answered() -> None:
    """I2, T3: the items as they came; the last turn may not call again."""
    async with scripted({"chunks": [written("Rome")]}, {"chunks": ["Sunny."]}) as (live, engine):
        first = (await live.create(ask("Rome?", tools=[WEATHER]))).json()
        (made,) = first["output"]
        history = [user("Rome?"), *first["output"], output(made["call_id"], "sunny")]
        second = await live.create(ask(history, tools=[WEATHER], tool_choice="none"))
        assert second.json()["output"][0]["content"][0]["text"] == "Sunny."
        seen = engine.calls[1].prompt.turns
        assert [turn.role for turn in seen] == ["user", "assistant", "tool"]
        assert seen[1].calls[0].arguments == made["arguments"]


class Plain(ScriptedEngine):
    """An engine that can be held to nothing, and knows no tools."""

    tools = False

    def capabilities(self, model: str) -> Capabilities:
        return Capabilities(tools=self.tools)


async def test_a_model_without_tools_says_so() -> None:
    """T3: 400, never ignored."""
    async with running(Plain(OK)) as live:
        refused(await live.create(ask(tools=[WEATHER])), "tools", code="unsupported_feature")


async def test_a_model_that_cannot_be_held_to_a_choice_says_so() -> None:
    """T3, T7: a free choice is served."""
    engine = Plain(CALLS_WEATHER)
    engine.tools = True
    async with running(engine) as live:
        for choice in ("required", {"type": "function", "name": "get_weather"}):
            answer = await live.create(ask(tools=[WEATHER], tool_choice=choice))
            refused(answer, "tool_choice", code="unsupported_feature")
        answer = await live.create(ask(text={"format": SCHEMA}))
        refused(answer, "text.format", code="unsupported_feature")
        answer = await live.create(ask(tools=[WEATHER]))
        assert answer.json()["output"][0]["arguments"] == ROME


async def test_a_refused_schema_leaves_nothing_behind() -> None:
    """C22, T7: nothing is generated or stored; the next request is served."""
    odd = {"type": "function", "name": "odd", "strict": True, "parameters": {"not": {}}}
    async with scripted(OK) as (live, engine):
        history = [user("x"), call("a"), output("a", "y")]
        for _ in range(3):
            answer = await live.create(ask(history, tools=[WEATHER, odd]))
            assert "not" in refused(answer, "tools[1].parameters")
        assert engine.calls == []
        assert engine.slots.running == 0
        assert (await live.create(ask(tools=[WEATHER]))).status_code == 200
