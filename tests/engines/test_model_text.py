"""Demands on the packaged model, which by itself would never meet them."""

from __future__ import annotations

import json
from typing import Any

import pytest

from antiphon.app import engine_of
from antiphon.config import Settings
from antiphon.engines import models
from tests.support.live import running

SETTINGS = Settings(ctx_size=1024)
CITY = {
    "type": "object",
    "properties": {"city": {"type": "string", "enum": ["Paris", "Rome", "東京"]}},
    "required": ["city"],
    "additionalProperties": False,
}
TOOLS = [{"type": "function", "name": "get_weather", "parameters": CITY, "strict": True}]
TREE = {
    "type": "object",
    "properties": {
        "状态": {"type": "string", "enum": ["在线", "離線", 'é"x']},
        "next": {"anyOf": [{"$ref": "#"}, {"type": "null"}]},
    },
    "required": ["状态", "next"],
    "additionalProperties": False,
}


def _ask(**more: Any) -> dict[str, Any]:
    return {"model": "default", "input": "Tell me a joke.", "max_output_tokens": 400, **more}


@pytest.mark.anyio
@pytest.mark.timeout(300)
async def test_what_is_demanded_is_what_comes() -> None:
    """T3, T7, B035, B036, B091: forced calls and schemas, with many seeds, streamed and not."""
    try:
        models.find_default()
    except models.ModelError as error:
        pytest.skip(str(error))
    async with running(engine_of(SETTINGS), SETTINGS) as live:
        for seed in range(20):
            body = _ask(tools=TOOLS, tool_choice="required", seed=seed)
            if seed % 2:
                response = (await live.stream(body)).response
            else:
                response = (await live.create(body)).json()
            assert response["status"] == "completed"
            (call,) = response["output"]
            assert (call["type"], call["name"]) == ("function_call", "get_weather")
            assert json.loads(call["arguments"])["city"] in ("Paris", "Rome", "東京")

        form = {"format": {"type": "json_schema", "name": "tree", "schema": TREE, "strict": True}}
        for seed in range(3):
            stream = await live.stream(_ask(text=form, seed=seed, temperature=0.5))
            if stream.response["status"] == "completed":
                assert json.loads(stream.text)["状态"] in ("在线", "離線", 'é"x')
            assert stream.text.startswith('{"状态": "')
