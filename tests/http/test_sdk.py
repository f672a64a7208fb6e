"""The official Python client, as people use it."""

from __future__ import annotations

import openai
import pytest
from openai.types.responses import FunctionToolParam, ResponseFunctionToolCall

from antiphon.config import Settings
from tests.support.bodies import CALLS_WEATHER, OK, WEATHER, turns
from tests.support.live import scripted
from tests.support.wire import connected

pytestmark = pytest.mark.anyio

TOOL: FunctionToolParam = {
    "type": "function",
    "name": "get_weather",
    "parameters": WEATHER["parameters"],
    "strict": True,
}


async def test_create_read_continue_and_delete() -> None:
    """E1, E2, E3, E5, C7: with typed objects."""
    async with scripted({"chunks": ["Noted", "."]}, OK) as (live, engine):
        client = live.sdk()
        first = await client.responses.create(
            model="scripted", input="My code is 7Q.", instructions="Be brief.", metadata={"a": "b"}
        )
        assert first.output_text == "Noted."
        assert first.usage is not None
        assert first.usage.output_tokens == 2
        assert first.metadata == {"a": "b"}
        second = await client.responses.create(
            model="scripted", input="Repeat it.", previous_response_id=first.id
        )
        assert second.previous_response_id == first.id
        assert turns(engine)[1] == ("assistant", "Noted.")
        assert await client.responses.retrieve(first.id) == first
        page = await client.responses.input_items.list(first.id)
        assert [item.type for item in page.data] == ["message"]
        await client.responses.delete(first.id)
        with pytest.raises(openai.NotFoundError) as caught:
            await client.responses.retrieve(first.id)
        assert caught.value.code == "response_not_found"


async def test_pages_are_followed_by_the_client() -> None:
    """E5: the cursor of one page finds the next."""
    async with scripted(OK) as (live, _):
        client = live.sdk()
        made = await client.responses.create(
            model="scripted",
            input=[{"role": "user", "content": f"m{number}"} for number in range(7)],
        )
        pages = client.responses.input_items.list(made.id, limit=3, order="asc")
        found = [item async for item in pages]
        assert len({item.id for item in found}) == len(found) == 7


async def test_a_plain_stream() -> None:
    """O6: create with stream."""
    async with scripted({"chunks": ["a", "b"]}) as (live, _):
        events = await live.sdk().responses.create(model="scripted", input="x", stream=True)
        kinds = [event.type async for event in events]
        assert kinds[0] == "response.created"
        assert kinds[-1] == "response.completed"


@pytest.mark.parametrize("compat", ["strict", "openai"])
async def test_the_stream_helper(compat: str) -> None:
    """O8: text, a call and the final response, through the client's own accumulator."""
    script = {"reasoning": "hm", "chunks": ["Let me", " see."], **CALLS_WEATHER}
    settings = Settings(compat="openai" if compat == "openai" else "strict")
    async with (
        scripted(script, settings=settings) as (live, _),
        live.sdk().responses.stream(model="scripted", input="Rome?", tools=[TOOL]) as stream,
    ):
        text = ""
        async for event in stream:
            if event.type == "response.output_text.delta":
                text += event.delta
        final = await stream.get_final_response()
        assert text == final.output_text == "Let me see."
        call = final.output[2]
        assert isinstance(call, ResponseFunctionToolCall)
        assert call.name == "get_weather"


async def test_a_tool_loop() -> None:
    """I2, I5: the output goes back as it came, with the result behind it."""
    async with scripted(CALLS_WEATHER, {"chunks": ["Sunny."]}) as (live, engine):
        client = live.sdk()
        first = await client.responses.create(model="scripted", input="Rome?", tools=[TOOL])
        (call,) = first.output
        assert isinstance(call, ResponseFunctionToolCall)
        second = await client.responses.create(
            model="scripted",
            tools=[TOOL],
            input=[
                {"role": "user", "content": "Rome?"},
                {
                    "type": "function_call",
                    "call_id": call.call_id,
                    "name": call.name,
                    "arguments": call.arguments,
                },
                {"type": "function_call_output", "call_id": call.call_id, "output": "sunny"},
            ],
        )
        assert second.output_text == "Sunny."
        assert [role for role, _ in turns(engine)] == ["user", "assistant", "tool"]


async def test_cancel() -> None:
    """E4."""
    async with scripted({"chunks": ["x "], "infinite": True}) as (live, _):
        async with connected(live) as wire:
            await wire.send({"model": "scripted", "input": "x", "stream": True})
            id = await wire.opened()
            cancelled = await live.sdk().responses.cancel(id)
        assert (cancelled.id, cancelled.status) == (id, "cancelled")


async def test_counting_and_models() -> None:
    """E7, E9."""
    async with scripted(OK, settings=Settings(alias=("small",))) as (live, _):
        client = live.sdk()
        counted = await client.responses.input_tokens.count(model="scripted", input="hi there")
        assert counted.object == "response.input_tokens"
        assert counted.input_tokens > 0
        assert [model.id async for model in client.models.list()] == ["scripted"]
        assert (await client.models.retrieve("small")).id == "scripted"


async def test_errors_have_their_class_code_and_param() -> None:
    """C1, C7, C22: as the client's own error types."""
    async with scripted(OK) as (live, _):
        client = live.sdk()
        with pytest.raises(openai.NotFoundError) as missing:
            await client.responses.create(model="nope", input="x")
        assert (missing.value.code, missing.value.param) == ("model_not_found", "model")
        with pytest.raises(openai.BadRequestError) as bad:
            await client.responses.create(model="scripted", input="x", temperature=3)
        assert bad.value.param == "temperature"
        assert bad.value.type == "invalid_request_error"
        with pytest.raises(openai.BadRequestError) as unknown:
            await client.responses.create(
                model="scripted", input="x", previous_response_id="resp_0", stream=True
            )
        assert unknown.value.code == "previous_response_not_found"


async def test_wrong_keys_and_a_busy_engine_have_their_class_too() -> None:
    """G5, N6."""
    script = {"refuse_at_admission": True}
    async with scripted(script, settings=Settings(api_key=("KEY",))) as (live, _):
        with pytest.raises(openai.AuthenticationError):
            await live.sdk("wrong").responses.create(model="scripted", input="x")
        with pytest.raises(openai.InternalServerError) as busy:
            await live.sdk("KEY").responses.create(model="scripted", input="x")
        assert busy.value.status_code == 503


async def test_a_failed_generation_raises() -> None:
    """O11: without a stream."""
    async with scripted({"chunks": ["a"], "error_after": 0}) as (live, _):
        with pytest.raises(openai.InternalServerError) as failed:
            await live.sdk().responses.create(model="scripted", input="x")
        assert failed.value.code == "server_error"


async def test_the_raw_answer_has_the_request_id() -> None:
    """O15: where the client looks for it."""
    async with scripted(OK) as (live, _):
        answer = await live.sdk().responses.with_raw_response.create(model="scripted", input="x")
        assert answer.request_id is not None
        assert answer.request_id.startswith("req_")
