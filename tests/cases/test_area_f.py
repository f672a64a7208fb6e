"""Public bug reports, area F: structured output, up to the point where a model is asked.

What a model then says is in `tests/engines/test_model_text.py`.
"""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.support.bodies import OK, WEATHER, Json
from tests.support.cases import case, refused
from tests.support.live import ask

pytestmark = pytest.mark.anyio

LARGE: Json = {"type": "object", "description": "x" * 65_536}


def schema(value: Any, **more: Any) -> Json:
    """A format of this schema."""
    return {"type": "json_schema", "name": "n", "schema": value, **more}


@pytest.mark.parametrize(
    ("format", "param"),
    [
        ({"type": "json_schema"}, "text.format.name"),
        ({"type": "json_schema", "name": "n"}, "text.format.schema"),
        (schema({"type": "not-a-type"}), "text.format.schema"),
        (schema({"$ref": "#/$defs/gone"}), "text.format.schema"),
        ({"type": "xml"}, "text.format"),
        ({"type": "json_schema", "name": "bad name!", "schema": {}}, "text.format.name"),
        (schema(True), "text.format.schema"),
        (schema(LARGE), "text.format.schema"),
    ],
    ids=["bare", "no schema", "no type", "dangling", "xml", "name", "true", "large"],
)
@pytest.mark.parametrize("stream", [False, True])
async def test_a_malformed_format_is_refused(format: Json, param: str, stream: bool) -> None:
    """B088: with its place and a reason, before the engine is asked."""
    async with case(OK) as (live, engine):
        answer = await live.create(ask(text={"format": format}, stream=stream))
        assert refused(answer, param)
        assert engine.calls == []


async def test_the_nested_form_of_chat_completions_is_an_alias() -> None:
    """B088: of the flat one; response_format is refused with directions."""
    nested = {"type": "json_schema", "json_schema": {"name": "n", "schema": {"type": "object"}}}
    async with case({"chunks": ["{}"]}, OK) as (live, engine):
        answer = await live.create(ask(text={"format": nested}))
        assert answer.status_code == 200, answer.text
        assert answer.json()["text"]["format"]["schema"] == {"type": "object"}
        assert engine.calls[0].prompt.output is not None
        answer = await live.create(ask(response_format={"type": "json_object"}))
        assert "text.format" in refused(answer, "response_format")


CITY: Json = {
    "type": "object",
    "properties": {"状态": {"type": "string", "enum": ["在线", "離線", 'é"x']}},
    "required": ["状态"],
    "additionalProperties": False,
}


async def test_a_schema_is_the_same_however_its_characters_were_sent() -> None:
    """B091: raw UTF-8 and escapes; echoed as it was."""
    body = ask("天气?", text={"format": schema(CITY)})
    said = ['{"状态": "在', '线"}']
    async with case({"chunks": said}, {"chunks": said}, OK) as (live, engine):
        for raw in (json.dumps(body), json.dumps(body, ensure_ascii=False)):
            answer = await live.http.post(
                "/v1/responses",
                content=raw.encode(),
                headers={"Content-Type": "application/json"},
            )
            assert answer.status_code == 200, answer.text
            assert answer.json()["text"]["format"]["schema"] == CITY
        outputs = [call.prompt.output for call in engine.calls]
        assert outputs[0] == outputs[1] is not None


def field(inner: Json) -> Json:
    """A schema with this field."""
    return {
        "type": "object",
        "properties": {"a": inner},
        "required": ["a"],
        "additionalProperties": False,
    }


@pytest.mark.parametrize(
    ("inner", "keyword"),
    [
        ({"type": "array", "items": {"type": "integer"}, "uniqueItems": True}, "uniqueItems"),
        ({"not": {"type": "string"}}, "not"),
        ({"if": {"type": "string"}, "then": {"minLength": 3}}, "if"),
        ({"contains": {"type": "string"}}, "contains"),
        ({"type": "string", "pattern": "(?=a)b"}, "look-around"),
        ({"type": "string", "format": "no-such-format"}, "no-such-format"),
    ],
    ids=["uniqueItems", "not", "if", "contains", "lookahead", "format"],
)
async def test_a_keyword_that_cannot_be_enforced_is_named(inner: Json, keyword: str) -> None:
    """B092, T7: in the output's schema and in a function's that must be called."""
    tool = {"type": "function", "name": "f", "parameters": field(inner)}
    async with case(OK) as (live, engine):
        answer = await live.create(ask(text={"format": schema(field(inner), strict=True)}))
        assert keyword in refused(answer, "text.format.schema")
        answer = await live.create(ask(tools=[WEATHER, tool], tool_choice="required"))
        assert keyword in refused(answer, "tools[1].parameters")
        assert engine.calls == []


@pytest.mark.parametrize(
    "inner",
    [
        {"type": "string", "pattern": r"^(\{[\w-]+\})|([\w-]+)$"},
        {"type": "number", "multipleOf": 3},
    ],
    ids=["pattern", "multipleOf"],
)
async def test_a_keyword_that_can_be_enforced_is_accepted(inner: Json) -> None:
    """B092."""
    async with case({"chunks": ['{"a": 3}']}, OK) as (live, _):
        answer = await live.create(ask(text={"format": schema(field(inner), strict=True)}))
        assert answer.status_code == 200, answer.text


async def test_what_is_no_document_is_a_failure() -> None:
    """B093: an engine that does not keep to the demand is no success."""
    async with case({"chunks": ['{"ok": true}', " and more"]}, OK) as (live, _):
        streamed = await live.stream(ask(text={"format": schema({"type": "object"})}))
        assert streamed.events[-1]["type"] == "response.failed"
        assert "JSON was demanded" in streamed.response["error"]["message"]
