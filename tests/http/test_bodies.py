"""Validation of bodies: where a fault is, what is told of it, and what it costs.

Encodings, charsets and sizes are with the bug cases of areas I and J.
"""

from __future__ import annotations

import json
from typing import Any

import pytest

from antiphon.store.memory import MemoryStore
from tests.support.bodies import OK, Json, call, output, user
from tests.support.cases import refused
from tests.support.live import ask, scripted

pytestmark = pytest.mark.anyio

TEXT: Json = {"type": "input_text", "text": "x"}


@pytest.mark.parametrize(
    ("items", "param"),
    [
        ([user("a"), 5], "input[1]"),
        ([user("a"), None], "input[1]"),
        ([{"content": "x"}], "input[0]"),
        ([{"role": "robot", "content": "x"}], "input[0].role"),
        ([{"role": "user"}], "input[0].content"),
        ([user(5)], "input[0].content"),
        ([user([TEXT, "x"])], "input[0].content[1]"),
        ([user([TEXT, {"type": "video"}])], "input[0].content[1]"),
        ([user([TEXT, {"type": "input_text"}])], "input[0].content[1].text"),
        ([user([{"type": "input_image", "detail": "huge"}])], "input[0].content[0].detail"),
        ([{**call("a"), "arguments": {}}], "input[0].arguments"),
        ([{**call("a"), "call_id": ""}], "input[0].call_id"),
        ([call("a"), output("a", 5)], "input[1].output"),
        ([call("a"), output("a", [{"type": "x"}])], "input[1].output[0]"),
        ([{"type": "reasoning", "content": [{"type": "x"}]}], "input[0].content[0].type"),
        ([{"type": "item_reference", "id": ""}], "input[0].id"),
        ({"role": "user", "content": "x"}, "input"),
        (7, "input"),
    ],
)
async def test_the_first_bad_place_is_named(items: Any, param: str) -> None:
    """C22: as a path of the client's own fields, without labels of unions."""
    async with scripted(OK) as (live, engine):
        message = refused(await live.create(ask(items)), param)
        assert "~" not in message
        assert engine.calls == []


@pytest.mark.parametrize(
    "body",
    [
        ask(temperature="s" * 5000),
        ask([{"type": "t" * 5000}]),
        ask([user([{"type": "p" * 5000}])]),
        ask(reasoning={"effort": "e" * 5000}),
        ask(tools=[{"type": "function", "name": "n" * 5000}]),
        ask(**{"text": {"format": {"type": "f" * 5000}}}),
        ask([output("c" * 5000, "x")]),
        ask(metadata={"m" * 5000: 1}),
        ask(previous_response_id="r" * 5000),
        {"model": "m" * 5000, "input": "x"},
    ],
)
async def test_no_more_than_a_little_of_the_input_is_echoed(body: Json) -> None:
    """C22: 200 characters at most, in the message and in the param."""
    async with scripted(OK) as (live, _):
        answer = await live.create(body)
        assert answer.status_code in (400, 404)
        for letter in "stpenfcmr":
            assert letter * 201 not in answer.text


async def test_nothing_is_stored_of_a_request_that_is_refused() -> None:
    """C22: faults that are found late leave no trace either."""
    store = MemoryStore()
    async with scripted(OK, store=store, context_window=64) as (live, engine):
        for body in (
            ask("x", temperature=9),
            ask([output("ghost", "x")]),
            ask("word " * 100),
            ask("x", previous_response_id="resp_0"),
            ask("x", background=True),
        ):
            assert (await live.create(body)).status_code == 400
        assert store.stats().entries == 0
        assert engine.calls == []


@pytest.mark.parametrize(("depth", "status"), [(100, 200), (130, 400), (100_000, 400)])
async def test_nesting_is_bounded(depth: int, status: int) -> None:
    """C23: 128 levels, counted where unknown fields are, too."""
    body = json.dumps(ask())[:-1] + ',"x":' + "[" * depth + "]" * depth + "}"
    async with scripted(OK) as (live, _):
        answer = await live.http.post(
            "/v1/responses", content=body.encode(), headers={"Content-Type": "application/json"}
        )
        assert answer.status_code == status


async def test_a_list_of_many_faults_costs_one_error() -> None:
    """C22: 100000 bad items are refused at the first."""
    async with scripted(OK) as (live, _):
        answer = await live.create(ask([{"type": "nonsense"}] * 100_000))
        refused(answer, "input[0]")


async def test_a_large_body_is_read_beside_the_event_loop() -> None:
    """C24: a history of several megabytes is taken."""
    async with scripted(OK) as (live, engine):
        answer = await live.create(ask([user("word " * 1000) for _ in range(500)]))
        assert answer.status_code == 200
        assert len(engine.calls[0].prompt.turns) == 500
