"""Structured output over HTTP: what is demanded, echoed and refused (contract C5, T7)."""

from __future__ import annotations

import json
from typing import Any

import pytest

from antiphon.engine.types import JsonOutput
from tests.support.bodies import OK, WEATHER, Json, text_of
from tests.support.cases import refused
from tests.support.live import ask, scripted

pytestmark = pytest.mark.anyio

CITY: Json = {
    "type": "object",
    "properties": {"city": {"type": "string"}},
    "required": ["city"],
    "additionalProperties": False,
}
SAID: Json = {"chunks": ['{"city": ', '"Rome"}']}


def schema(value: Any, **more: Any) -> Json:
    """`text` with a format of this schema."""
    return {"format": {"type": "json_schema", "name": "n", "schema": value, **more}}


async def test_the_schema_reaches_the_engine_and_is_echoed() -> None:
    """C5: all keys of the format, `strict` false where it was not given."""
    async with scripted(SAID) as (live, engine):
        given = schema(CITY, description="A city.", strict=True)
        streamed = await live.stream(ask(text={**given, "verbosity": "low"}))
        assert streamed.response["text"] == {**given, "verbosity": "low"}
        assert json.loads(streamed.text) == {"city": "Rome"}
        assert engine.calls[0].prompt.output == JsonOutput(CITY)
        for more in ({}, {"strict": None}, {"strict": False}):
            echoed = (await live.create(ask(text=schema(CITY, **more)))).json()["text"]["format"]
            assert (echoed["strict"], echoed["description"]) == (False, None)


async def test_an_object_without_a_schema() -> None:
    """C5: json_object."""
    async with scripted(SAID) as (live, engine):
        streamed = await live.stream(ask(text={"format": {"type": "json_object"}}))
        assert streamed.response["text"]["format"] == {"type": "json_object"}
        assert engine.calls[0].prompt.output == JsonOutput()


async def test_with_tools_an_answer_is_a_document_or_a_call() -> None:
    """C5, T3: both count as what was demanded, prose does not."""
    written = '<tool_call>{"name": "get_weather", "arguments": {"city": "Rome"}}</tool_call>'
    async with scripted(SAID, {"chunks": [written]}, {"chunks": ["Rome."]}) as (live, _):
        body = ask(text=schema(CITY), tools=[WEATHER])
        assert text_of((await live.create(body)).json()) == '{"city": "Rome"}'
        called = (await live.create(body)).json()
        assert [item["type"] for item in called["output"]] == ["function_call"]
        assert (await live.create(body)).status_code == 500


async def test_a_document_cut_by_the_limit_is_incomplete_and_no_failure() -> None:
    """C5, O5."""
    async with scripted(SAID) as (live, _):
        body = ask(text=schema(CITY), max_output_tokens=1)
        response = (await live.create(body)).json()
        assert response["status"] == "incomplete"
        assert text_of(response) == '{"city": '


@pytest.mark.parametrize("path", ["/v1/responses", "/v1/responses/input_tokens"])
async def test_a_schema_that_cannot_be_enforced_is_refused_where_it_is_counted_too(
    path: str,
) -> None:
    """E7, T7."""
    async with scripted(OK) as (live, _):
        answer = await live.http.post(path, json=ask(text=schema({"type": "thing"})))
        assert "thing" in refused(answer, "text.format.schema")


@pytest.mark.parametrize(
    "node",
    [
        {"$ref": "#/$defs/node"},
        {
            "type": "object",
            "properties": {"next": {"$ref": "#/$defs/node"}},
            "required": ["next"],
        },
    ],
)
async def test_a_schema_without_an_end_is_refused(node: Json) -> None:
    """T7: recursion needs a base case."""
    body = ask(text=schema({"$ref": "#/$defs/node", "$defs": {"node": node}}))
    async with scripted(OK) as (live, engine):
        assert "without an end" in refused(await live.create(body), "text.format.schema")
        assert engine.calls == []


async def test_a_document_is_stored_as_it_was_said() -> None:
    """S4: and a chain shows it to the model as text."""
    async with scripted(SAID, OK) as (live, engine):
        first = (await live.create(ask(text=schema(CITY)))).json()
        stored = (await live.http.get(f"/v1/responses/{first['id']}")).json()
        assert stored == first
        await live.create(ask("And now?", previous_response_id=first["id"]))
        assert engine.calls[1].prompt.turns[1].content == '{"city": "Rome"}'
        assert engine.calls[1].prompt.output is None
