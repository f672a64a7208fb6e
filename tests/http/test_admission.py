"""Slots and the queue in front of them."""

from __future__ import annotations

import contextlib

import pytest

from antiphon.config import Settings
from antiphon.engines.scripted import ScriptedEngine
from tests.support.bodies import OK
from tests.support.live import ask, error_of, running
from tests.support.wire import Wire, connected

pytestmark = pytest.mark.anyio

GATED = {"wait_for": "gate", **OK}


@pytest.mark.parametrize("stream", [True, False])
async def test_a_full_queue_is_503_before_the_stream_opens(stream: bool) -> None:
    """N6: with Retry-After; who waits already is served."""
    engine = ScriptedEngine(GATED, slots=1, waiting=1)
    async with running(engine) as live, connected(live) as first, connected(live) as second:
        for wire in (first, second):
            await wire.send(ask(stream=True))
            await wire.opened()
        answer = await live.create(ask(stream=stream))
        assert answer.status_code == 503
        assert int(answer.headers["retry-after"]) >= 1
        error = error_of(answer)
        assert (error["type"], error["code"]) == ("server_error", "server_overloaded")
        engine.open_gate("gate")
        for wire in (first, second):
            await wire.until(b"event: response.completed\n")
        assert (await live.create(ask(stream=stream))).status_code == 200


async def test_a_refused_request_leaves_no_trace() -> None:
    """N6: its parent is not held and it can be sent again."""
    engine = ScriptedEngine({"answers": [OK, GATED]}, slots=1, waiting=0)
    async with running(engine) as live, connected(live) as wire:
        parent = (await live.create(ask())).json()["id"]
        await wire.send(ask(stream=True))
        await wire.opened()
        body = ask("x", previous_response_id=parent)
        assert (await live.create(body)).status_code == 503
        assert len(live.service.runs) == 1
        engine.open_gate("gate")
        await wire.until(b"data: [DONE]\n\n")
        assert (await live.create(body)).status_code == 200


async def test_counting_needs_no_slot() -> None:
    """N6, E7: input_tokens is answered while everything is busy."""
    engine = ScriptedEngine(GATED, slots=1, waiting=0)
    async with running(engine) as live, connected(live) as wire:
        await wire.send(ask(stream=True))
        await wire.opened()
        counted = await live.http.post("/v1/responses/input_tokens", json=ask())
        assert counted.status_code == 200
        engine.open_gate("gate")
        await wire.until(b"data: [DONE]\n\n")


async def test_principals_take_turns() -> None:
    """N6: who asks once waits for one of the other's requests, not for all of them."""
    settings = Settings(api_key=("a:KEY_A", "b:KEY_B"))
    engine = ScriptedEngine(GATED, slots=1)
    async with running(engine, settings) as live, contextlib.AsyncExitStack() as stack:
        wires: list[Wire] = []
        for text in ("a1", "a2", "a3", "a4", "b1", "b2"):
            wire = await stack.enter_async_context(connected(live))
            key = {"Authorization": f"Bearer KEY_{text[0].upper()}"}
            await wire.send(ask(text, stream=True), headers=key)
            await wire.opened()
            wires.append(wire)
        engine.open_gate("gate")
        for wire in wires:
            await wire.until(b"data: [DONE]\n\n")
        served = [call.prompt.turns[-1].content for call in engine.calls]
        assert served == ["a1", "a2", "b1", "a3", "b2", "a4"]


async def test_as_many_run_at_once_as_there_are_slots() -> None:
    """N6: the others wait in the order they came."""
    engine = ScriptedEngine(GATED, slots=2)
    async with running(engine) as live, contextlib.AsyncExitStack() as stack:
        wires = []
        for number in range(5):
            wire = await stack.enter_async_context(connected(live))
            await wire.send(ask(str(number), stream=True))
            await wire.opened()
            wires.append(wire)
        assert (engine.slots.running, engine.slots.waiting, len(engine.calls)) == (2, 3, 2)
        engine.open_gate("gate")
        for wire in wires:
            await wire.until(b"data: [DONE]\n\n")
        served = [call.prompt.turns[-1].content for call in engine.calls]
        assert served == ["0", "1", "2", "3", "4"]
