"""Public bug reports, area B: tools, on an engine that says what a case needs.

What only a model that is really held to a grammar can show is in
`tests/engines/test_model_text.py`.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from antiphon.config import Settings
from antiphon.text.template import PromptTemplate
from tests.support.bodies import CALLS_WEATHER, OK, ROME, TIME, WEATHER, Json, text_of
from tests.support.cases import case, refused
from tests.support.live import Live, ask
from tests.support.streams import Stream

pytestmark = pytest.mark.anyio

TEMPLATES = Path(__file__).parents[1] / "text" / "templates"
BOSTON = '{"city":"Boston"}'
WRITES_CALL: Json = {
    "chunks": ['<tool_call>{"name":"get_weather","arguments":{"city":"Rome"}}</tool_call>']
}


async def both(live: Live, body: Json) -> tuple[list[Json], Stream]:
    """The items of a request, ids left out, after it was seen that its stream has the same."""
    plain = await live.create(body)
    assert plain.status_code == 200, plain.text
    streamed = await live.stream(body)
    items = [bare(item) for item in plain.json()["output"]]
    assert items == [bare(item) for item in streamed.response["output"]]
    assert plain.json()["status"] == streamed.response["status"]
    return items, streamed


def bare(item: Json) -> Json:
    """The item without what is made anew each time."""
    return {key: value for key, value in item.items() if key not in ("id", "call_id")}


def rendered(prompt: Any) -> str:
    """What a template with tools makes of a prompt."""
    template = PromptTemplate((TEMPLATES / "tools.jinja").read_text("utf-8"))
    return "".join(segment.text for segment in template.render(prompt))


HOSTED = [{"type": "web_search"}, {"type": "image_generation"}, WEATHER]


async def test_a_hosted_tool_is_refused_by_its_place_under_the_strict_policy() -> None:
    """B030: and a kind of tool that nobody knows under every policy."""
    async with case(OK) as (live, engine):
        refused(await live.create(ask(tools=HOSTED)), "tools[0].type", code="unsupported_feature")
        unknown = await live.create(ask(tools=[{"type": "no_such_tool"}]))
        assert "no_such_tool" in refused(unknown, "tools[0].type", code="unsupported_feature")
        assert engine.calls == []


async def test_a_hosted_tool_is_left_out_with_notice_under_the_lenient_policy() -> None:
    """B030: the model sees the function only; a choice of what was left out is refused."""
    async with case(OK, settings=Settings(compat="openai")) as (live, engine):
        answer = await live.create(ask(tools=HOSTED))
        assert answer.status_code == 200
        named = answer.headers["antiphon-ignored"]
        assert named == "tools[0]:web_search, tools[1]:image_generation"
        assert [tool.name for tool in engine.calls[0].prompt.tools] == ["get_weather"]
        assert [tool["type"] for tool in answer.json()["tools"]] == [
            "web_search",
            "image_generation",
            "function",
        ]
        chosen = ask(tools=HOSTED, tool_choice={"type": "web_search"})
        refused(await live.create(chosen), "tool_choice", code="unsupported_feature")
        unknown = await live.create(ask(tools=[{"type": "no_such_tool"}]))
        refused(unknown, "tools[0].type", code="unsupported_feature")


@pytest.mark.parametrize(
    "more",
    [
        {},
        {"parameters": None},
        {"parameters": {}},
        {
            "parameters": {"type": "object", "properties": {}},
            "strict": None,
            "description": None,
        },
    ],
    ids=["left out", "null", "empty", "no properties"],
)
async def test_a_function_may_have_no_parameters(more: Json) -> None:
    """B032: the template sees an object without properties, arguments are `{}`."""
    tool = {"type": "function", "name": "ping", **more}
    called = {"tool_call": {"name": "ping", "arguments": ""}}
    async with case(called, called, OK) as (live, engine):
        items, _ = await both(live, ask(tools=[tool], tool_choice="required"))
        assert [(item["name"], item["arguments"]) for item in items] == [("ping", "{}")]
        assert '"parameters": {"type": "object", "properties": {}}' in rendered(
            engine.calls[0].prompt
        )
        echoed = (await live.create(ask(tools=[tool]))).json()["tools"]
        assert echoed == [{"description": None, "parameters": None, "strict": None, **tool}]


async def test_null_inside_a_schema_is_rendered() -> None:
    """B033: as a default and in an enum, streamed and not."""
    field = {"type": ["string", "null"], "default": None, "enum": ["x", None]}
    schema = {"type": "object", "properties": {"a": field}}
    tool = {"type": "function", "name": "f", "parameters": schema}
    async with case(OK) as (live, engine):
        await both(live, ask(tools=[tool]))
        assert json.dumps(schema) in rendered(engine.calls[0].prompt)


@pytest.mark.parametrize(
    "choice",
    [
        {"type": "function", "name": "get_time"},
        {"type": "function", "function": {"name": "get_time"}},
    ],
    ids=["flat", "as in chat completions"],
)
async def test_a_named_choice_reaches_the_engine_and_is_echoed(choice: Json) -> None:
    """B035: as the only function that may be called, once."""
    called = {"tool_call": {"name": "get_time", "arguments": '{"zone":"CET"}'}}
    async with case(called) as (live, engine):
        answer = (await live.create(ask(tools=[WEATHER, TIME], tool_choice=choice))).json()
        assert [item["name"] for item in answer["output"]] == ["get_time"]
        assert answer["tool_choice"] == {"type": "function", "name": "get_time"}
        asked = engine.calls[0].prompt.choice
        assert (asked.mode, asked.names, asked.most) == ("required", ("get_time",), 1)


@pytest.mark.parametrize(
    "choice", ["required", {"type": "function", "name": "get_weather"}], ids=["required", "named"]
)
async def test_prose_in_place_of_a_demanded_call_is_a_failure(choice: Any) -> None:
    """B035, B036: an engine that does not keep to the demand is no success."""
    async with case(OK) as (live, _):
        body = ask(tools=[WEATHER], tool_choice=choice)
        assert (await live.create(body)).status_code == 500
        streamed = await live.stream(body)
        assert streamed.events[-1]["type"] == "response.failed"
        error = streamed.response["error"]
        assert error["code"] == "server_error"
        assert "a call was demanded" in error["message"]


async def test_a_required_call_is_no_text() -> None:
    """B036: one call, no delta of text, streamed and not."""
    async with case(WRITES_CALL, WRITES_CALL, OK) as (live, _):
        items, streamed = await both(live, ask(tools=[WEATHER], tool_choice="required"))
        assert [(item["type"], item["status"]) for item in items] == [
            ("function_call", "completed")
        ]
        assert json.loads(items[0]["arguments"]) == {"city": "Rome"}
        assert streamed.text == ""
        refused(await live.create(ask(tool_choice="required")), "tool_choice")


async def test_where_nothing_may_be_called_a_written_call_is_text() -> None:
    """B037: word for word; without tools `none` is fine too."""
    async with case(WRITES_CALL) as (live, engine):
        items, streamed = await both(live, ask(tools=[WEATHER], tool_choice="none"))
        assert [item["type"] for item in items] == ["message"]
        assert streamed.text == WRITES_CALL["chunks"][0]
        assert engine.calls[0].prompt.tools == ()
        assert (await live.create(ask(tool_choice="none"))).status_code == 200


def allowed(mode: str, *names: str) -> Json:
    """A choice of these functions."""
    tools = [{"type": "function", "name": name} for name in names]
    return {"type": "allowed_tools", "mode": mode, "tools": tools}


async def test_only_allowed_tools_can_be_called() -> None:
    """B038: the others are visible, but a call of one is text; mode auto forces nothing."""
    async with case(WRITES_CALL, WRITES_CALL, OK) as (live, engine):
        body = ask(tools=[WEATHER, TIME], tool_choice=allowed("auto", "get_time"))
        items, streamed = await both(live, body)
        assert [item["type"] for item in items] == ["message"]
        assert streamed.text == WRITES_CALL["chunks"][0]
        assert [tool.name for tool in engine.calls[0].prompt.tools] == ["get_weather", "get_time"]
        echoed = streamed.response
        assert echoed["tool_choice"] == body["tool_choice"]
        assert [tool["name"] for tool in echoed["tools"]] == ["get_weather", "get_time"]
        assert (await live.create(body)).json()["status"] == "completed"


async def test_allowed_tools_may_demand_a_call_of_one_of_them() -> None:
    """B038: mode required; a name that is not among the tools is 400."""
    async with case(WRITES_CALL, OK) as (live, engine):
        body = ask(tools=[WEATHER, TIME], tool_choice=allowed("required", "get_time"))
        assert (await live.create(body)).status_code == 500
        asked = engine.calls[0].prompt.choice
        assert (asked.mode, asked.names) == ("required", ("get_time",))
        ghost = ask(tools=[WEATHER], tool_choice=allowed("auto", "ghost"))
        assert "ghost" in refused(await live.create(ghost), "tool_choice")


async def test_parallel_calls_are_items_of_their_own() -> None:
    """B041: ids, indexes and arguments are kept apart."""
    calls = [
        {"name": "get_weather", "arguments": ROME},
        {"name": "get_weather", "arguments": '{"city":"Oslo"}'},
    ]
    async with case({"tool_calls": calls}) as (live, _):
        streamed = await live.stream(ask(tools=[WEATHER]))
        output = streamed.response["output"]
        assert [item["arguments"] for item in output] == [ROME, '{"city":"Oslo"}']
        for key in ("id", "call_id"):
            assert len({item[key] for item in output}) == 2
        for index, item in enumerate(output):
            own = [event for event in streamed.events if event.get("output_index") == index]
            kinds = [event["type"].removeprefix("response.") for event in own]
            assert kinds[0] == "output_item.added"
            assert kinds[-2:] == ["function_call_arguments.done", "output_item.done"]
            deltas = [event for event in own if event["type"].endswith("arguments.delta")]
            assert {event["item_id"] for event in deltas} == {item["id"]}


async def test_ids_of_calls_are_never_the_same() -> None:
    """B042: within a response and across responses; `id` is not `call_id`."""
    twice = {"tool_calls": [CALLS_WEATHER["tool_calls"][0]] * 2}
    async with case(twice) as (live, _):
        found: list[Json] = []
        for _ in range(3):
            found += (await live.create(ask("again", tools=[WEATHER]))).json()["output"]
        assert len({item["call_id"] for item in found}) == len(found) == 6
        for item in found:
            assert item["id"].startswith("fc_")
            assert item["call_id"].startswith("call_")
            assert item["name"] == "get_weather"


@pytest.mark.parametrize("name", ["", "ghost"])
async def test_a_call_of_no_declared_function_is_text(name: str) -> None:
    """B042: nothing is lost, and there is no call without a real name."""
    said = f'<tool_call>{{"name":"{name}","arguments":{{}}}}</tool_call>'
    async with case({"chunks": [said]}) as (live, _):
        items, streamed = await both(live, ask(tools=[WEATHER]))
        assert [item["type"] for item in items] == ["message"]
        assert streamed.text == said


SPLIT = [
    "Sure.",
    "\n<to",
    "ol_call>",
    '{"name":"get_weather","arg',
    'uments":{"city":"Boston"}}',
    "</tool",
    "_call>",
]


async def test_markup_of_a_call_never_shows() -> None:
    """B043: also when the marker comes in pieces."""
    async with case({"chunks": SPLIT}) as (live, _):
        items, streamed = await both(live, ask(tools=[WEATHER]))
        assert [item["type"] for item in items] == ["message", "function_call"]
        assert streamed.text == "Sure."
        assert items[1]["arguments"] == BOSTON


async def test_the_mere_beginning_of_a_marker_is_text() -> None:
    """B043: at the end of the answer."""
    async with case({"chunks": ["Sure. ", "<tool"]}) as (live, _):
        items, streamed = await both(live, ask(tools=[WEATHER]))
        assert [item["type"] for item in items] == ["message"]
        assert streamed.text == "Sure. <tool"


async def test_a_call_is_not_swallowed() -> None:
    """B044: there is exactly one item for it."""
    async with case(WRITES_CALL) as (live, _):
        items, _ = await both(live, ask(tools=[WEATHER]))
        assert [item["type"] for item in items] == ["function_call"]


async def test_a_call_that_cannot_be_read_is_delivered_as_text() -> None:
    """B044: word for word."""
    async with case({"chunks": ["<tool_call>{bad</tool_call>"]}) as (live, _):
        items, streamed = await both(live, ask(tools=[WEATHER]))
        assert [item["type"] for item in items] == ["message"]
        assert streamed.text == "<tool_call>{bad</tool_call>"


@pytest.mark.parametrize(
    "parts", [['{"ci', 'ty":', '"Rome"}'], [ROME], [""]], ids=["three", "one", "empty"]
)
async def test_arguments_grow_in_one_item(parts: list[str]) -> None:
    """B046, B047: one item, increments, and `done` in any case."""
    async with case({"tool_call_deltas": {"name": "get_weather", "parts": parts}}) as (live, _):
        events = (await live.stream(ask(tools=[WEATHER]))).events
        added = [event for event in events if event["type"] == "response.output_item.added"]
        assert len(added) == 1
        item = added[0]["item"]
        assert (item["arguments"], item["status"]) == ("", "in_progress")
        deltas = [event for event in events if event["type"].endswith("arguments.delta")]
        (done,) = [event for event in events if event["type"].endswith("arguments.done")]
        assert {event["item_id"] for event in (*deltas, done)} == {item["id"]}
        assert {event["output_index"] for event in (*deltas, done)} == {0}
        final = events[-1]["response"]["output"][0]
        assert "".join(event["delta"] for event in deltas) == final["arguments"]
        assert (done["arguments"], done["name"]) == (final["arguments"], "get_weather")
        assert final["arguments"] == ("".join(parts) or "{}")


async def test_a_call_cut_by_the_limit_is_incomplete_and_not_repaired() -> None:
    """B061: the item before it is complete."""
    cut = {
        "chunks": ["Well.", '<tool_call>{"name":"get_weather",', '"arguments":{"city":"Ro'],
        "finish": "length",
    }
    async with case(cut, cut, OK) as (live, _):
        items, streamed = await both(live, ask(tools=[WEATHER]))
        assert streamed.response["status"] == "incomplete"
        assert [item["status"] for item in items] == ["completed", "incomplete"]
        assert items[1]["arguments"] == '{"city":"Ro'
        assert text_of(streamed.response) == "Well."
