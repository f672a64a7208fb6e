"""Faults that a stranger found, so that they stay away."""

from __future__ import annotations

import asyncio
import logging
from pathlib import Path

import pytest

from antiphon.app import _listen
from antiphon.config import Settings
from antiphon.engine.errors import EngineError
from antiphon.engines.scripted import ScriptedEngine
from antiphon.http.auth import parse_keys
from antiphon.schema.items import MAX_ITEMS
from tests.support.live import ask, error_of, scripted
from tests.support.wire import connected

pytestmark = pytest.mark.anyio


@pytest.mark.parametrize("stop", ["x" * 1025, ["ok", "x" * 100_000]])
async def test_a_stop_string_is_bounded(stop: object) -> None:
    """C13: looking for a stop costs memory and time with its length."""
    async with scripted() as (live, _):
        answer = await live.create(ask(stop=stop))

    assert answer.status_code == 400
    assert error_of(answer)["param"] == "stop"


async def test_the_number_of_items_is_bounded() -> None:
    """C22: a body of a million items would hold up everybody else."""
    async with scripted() as (live, engine):
        answer = await live.create(ask([{"role": "user", "content": "x"}] * (MAX_ITEMS + 1)))

    assert answer.status_code == 400
    assert error_of(answer)["param"] == "input"
    assert not engine.calls


async def test_a_null_type_of_a_message_is_no_type() -> None:
    """C20, I1: a null is the same as leaving the field out."""
    async with scripted() as (live, _):
        answer = await live.create(ask([{"type": None, "role": "user", "content": "x"}]))

    assert answer.status_code == 200


async def test_a_client_that_leaves_in_its_body_is_no_crash(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """O13: half a body and then nothing is an ordinary event."""
    caplog.set_level(logging.INFO, "antiphon")
    async with scripted() as (live, _):
        async with connected(live) as wire:
            wire.writer.write(
                b"POST /v1/responses HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n"
                b'Content-Length: 100\r\n\r\n{"model"'
            )
            await wire.writer.drain()
        async with asyncio.timeout(10):
            while not any("status=gone" in record.message for record in caplog.records):
                await live.http.get("/health")

    assert not [record for record in caplog.records if record.levelno >= logging.ERROR]


@pytest.mark.parametrize("line", [b"FOO / HTTP/1.1", b"GET", b"PRI * HTTP/2.0"])
async def test_what_is_no_http_gets_the_envelope_too(line: bytes) -> None:
    """O15, E15: an id and a JSON error on every answer."""
    async with scripted() as (live, _):
        answer = await live.raw(line + b"\r\nHost: x\r\n\r\n")

    head, _, body = answer.partition(b"\r\n\r\n")
    assert head.startswith(b"HTTP/1.1 400")
    assert b"x-request-id: req_" in head.lower()
    assert body.startswith(b'{"error":{"message":')


@pytest.mark.parametrize("word", ["compact", "input_tokens"])
async def test_reserved_words_are_no_ids_anywhere(word: str) -> None:
    """E14: not in front of `cancel` and `input_items` either."""
    async with scripted() as (live, _):
        cancel = await live.http.post(f"/v1/responses/{word}/cancel")
        items = await live.http.get(f"/v1/responses/{word}/input_items")

    assert [cancel.status_code, items.status_code] == [404, 404]
    assert "No such path" in error_of(cancel)["message"]
    assert "No such path" in error_of(items)["message"]


async def test_input_items_are_there_while_the_response_is_made() -> None:
    """E5: what GET shows as in progress has its input items."""
    async with scripted({"chunks": ["x"], "wait_for": "go"}) as (live, engine):
        task = asyncio.create_task(live.create(ask("what I said")))
        async with asyncio.timeout(10):
            while not engine.calls:
                await live.http.get("/health")
            await engine.calls[0].begun.wait()
        (id,) = live.service.runs._runs
        page = await live.http.get(f"/v1/responses/{id}/input_items")
        engine.open_gate("go")
        await task

    assert page.json()["data"][0]["content"][0]["text"] == "what I said"


def test_the_listening_socket_is_not_inherited() -> None:
    """N8: a worker must not keep the port open when the server stops listening."""
    with _listen(Settings(port=0)) as listener:
        assert not listener.get_inheritable()


def test_one_key_cannot_have_two_names() -> None:
    """G5: each key is one principal."""
    with pytest.raises(ValueError, match="two names"):
        parse_keys(["ann:secret", "bob:secret"])


@pytest.mark.parametrize("script", ['{"answers": []}', '{"chunk": ["x"]}', "[1]"])
def test_a_script_that_says_nothing_is_refused(script: str, tmp_path: Path) -> None:
    """N8: one clear line, not an empty server."""
    path = tmp_path / "script.json"
    path.write_text(script)

    with pytest.raises(EngineError):
        ScriptedEngine.load(path, slots=1, waiting=1)
