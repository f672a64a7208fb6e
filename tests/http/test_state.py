"""Stored responses: what is kept, for how long, and for whom."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

import httpx2
import pytest

from antiphon.config import Settings
from antiphon.store.base import Document
from antiphon.store.memory import MemoryStore
from tests.support.bodies import OK, Json, turns, user
from tests.support.cases import refused
from tests.support.live import Live, ask, scripted
from tests.support.wire import connected, ended

pytestmark = pytest.mark.anyio

A = {"Authorization": "Bearer KEY_A"}
B = {"Authorization": "Bearer KEY_B"}
TWO_KEYS = Settings(api_key=("a:KEY_A", "b:KEY_B"))


async def made(live: Live, text: Any = "t", **more: Any) -> str:
    """The id of a new response."""
    answer = await live.create(ask(text, **more))
    assert answer.status_code == 200, answer.text
    id: str = answer.json()["id"]
    return id


async def status(live: Live, id: str) -> int:
    """The status of reading a response."""
    return (await live.http.get(f"/v1/responses/{id}")).status_code


async def test_the_least_recently_used_goes_first() -> None:
    """S2: a read and a chain refresh, a write does not wait for either."""
    async with scripted(OK, settings=Settings(responses_store_max_entries=3)) as (live, _):
        one, two, three = [await made(live) for _ in range(3)]
        assert await status(live, one) == 200
        four = await made(live)
        assert [await status(live, id) for id in (one, two, three, four)] == [200, 404, 200, 200]


async def test_a_chain_keeps_the_history_it_needs() -> None:
    """S2, S5: evicted parents cannot be read, but their children still know them."""
    async with scripted(OK, settings=Settings(responses_store_max_entries=1)) as (live, engine):
        one = await made(live, "one")
        two = await made(live, "two", previous_response_id=one)
        assert (await status(live, one), await status(live, two)) == (404, 200)
        await made(live, "three", previous_response_id=two)
        assert [text for _, text in turns(engine)] == ["one", "ok", "two", "ok", "three"]


async def test_an_object_over_the_budget_evicts_nobody() -> None:
    """S3: it is answered, but not kept."""
    async with scripted(OK, settings=Settings(responses_store_max_bytes=20_000)) as (live, _):
        small = [await made(live) for _ in range(3)]
        huge = await made(live, "x" * 30_000)
        assert await status(live, huge) == 404
        assert [await status(live, id) for id in small] == [200] * 3


async def test_a_budget_of_zero_bytes_keeps_nothing() -> None:
    """S2: the routes live, everything is gone at once."""
    async with scripted(OK, settings=Settings(responses_store_max_bytes=0)) as (live, _):
        id = await made(live)
        assert await status(live, id) == 404
        answer = await live.create(ask("x", previous_response_id=id))
        refused(answer, "previous_response_id", code="previous_response_not_found")


async def test_the_store_is_written_before_the_terminal_event() -> None:
    """S4: for a cut and a failed response as well; 50 times, on the open connection."""
    cut = {"chunks": ["a"], "finish": "length"}
    broken = {"chunks": ["a", "b"], "error_after": 1}
    scripts = [cut, OK, broken, OK] * 25
    kinds = (b"event: response.incomplete\n", b"event: response.failed\n")
    async with scripted(*scripts, OK) as (live, _):
        for number in range(50):
            async with connected(live) as wire:
                await wire.send(ask(stream=True))
                id = await wire.opened()
                await wire.until(kinds[number % 2])
                await made(live, "and?", previous_response_id=id)


class FullDisk(MemoryStore):
    """A store that cannot write."""

    async def put(self, document: Document) -> bool:
        raise OSError("disk full at block 7")


async def test_what_cannot_be_stored_is_not_called_completed() -> None:
    """S4, O11: the response is failed, without detail; store false is not concerned."""
    async with scripted(OK, store=FullDisk()) as (live, _):
        stream = await live.stream(ask())
        assert stream.events[-1]["type"] == "response.failed"
        assert "disk" not in str(stream.response["error"])
        assert (await live.create(ask())).status_code == 500
        assert (await live.create(ask(store=False))).status_code == 200


async def test_a_turn_of_a_chain_costs_its_own_size() -> None:
    """S5: the history is linked, not copied."""
    store = MemoryStore()
    async with scripted(OK, store=store) as (live, _):
        previous = await made(live, "x" * 10_000)
        before = store.stats().bytes
        for _ in range(10):
            previous = await made(live, "short", previous_response_id=previous)
        assert store.stats().bytes - before < 10_000 + 10 * 2_000


async def test_a_parent_may_be_deleted_while_its_child_is_made() -> None:
    """S5: the run keeps what it continues."""
    async with scripted(OK, {"wait_for": "gate", **OK}, OK) as (live, engine):
        parent = await made(live, "one")
        async with connected(live) as wire:
            await wire.send(ask("two", stream=True, previous_response_id=parent))
            child = await wire.opened()
            assert (await live.http.delete(f"/v1/responses/{parent}")).status_code == 200
            engine.open_gate("gate")
            await wire.until(b"data: [DONE]\n\n")
        await made(live, "three", previous_response_id=child)
        assert [text for _, text in turns(engine)] == ["one", "ok", "two", "ok", "three"]


async def test_a_failed_or_cancelled_response_can_be_read_and_continued() -> None:
    """S6: with what it said."""
    async with scripted({"chunks": ["half"], "error_after": 1}, OK) as (live, engine):
        stream = await live.stream(ask("one"))
        page = await live.http.get(f"/v1/responses/{stream.response['id']}/input_items")
        assert page.status_code == 200
        await made(live, "two", previous_response_id=stream.response["id"])
        assert [text for _, text in turns(engine)] == ["one", "half", "two"]


async def test_what_is_stored_reads_back_whatever_it_holds() -> None:
    """S6: odd characters, empty parts, long ids, in input, metadata and instructions."""
    odd = '\u2028\x00\x7f\ufeff\U0010ffff "\\ </script>\r\n'
    items = [{"id": "i" * 300, **user(odd)}, user([{"type": "input_text", "text": ""}]), user("x")]
    async with scripted({"chunks": [odd]}) as (live, _):
        first = await live.create(ask(items, instructions=odd, metadata={odd: odd}, user=odd))
        id = first.json()["id"]
        assert (await live.http.get(f"/v1/responses/{id}")).content == first.content
        assert first.json()["metadata"] == {odd: odd}
        page = (await live.http.get(f"/v1/responses/{id}/input_items?order=asc")).json()
        assert page["data"][0]["content"][0]["text"] == odd
        assert page["data"][0]["id"] == "i" * 300


Use = Callable[[Live, str, str], Awaitable[httpx2.Response]]


async def _continue(live: Live, id: str, item: str) -> httpx2.Response:
    return await live.create(ask("x", previous_response_id=id), headers=B)


async def _refer(live: Live, id: str, item: str) -> httpx2.Response:
    reference = {"type": "item_reference", "id": item}
    return await live.create(ask([reference, user("x")]), headers=B)


async def _count(live: Live, id: str, item: str) -> httpx2.Response:
    body = ask("x", previous_response_id=id)
    return await live.http.post("/v1/responses/input_tokens", json=body, headers=B)


def _request(method: str, tail: str = "") -> Use:
    async def use(live: Live, id: str, item: str) -> httpx2.Response:
        return await live.http.request(method, f"/v1/responses/{id}{tail}", headers=B)

    return use


USES: dict[str, Use] = {
    "read": _request("GET"),
    "replay": _request("GET", "?stream=true"),
    "items": _request("GET", "/input_items"),
    "page": _request("GET", "/input_items?after=x"),
    "cancel": _request("POST", "/cancel"),
    "delete": _request("DELETE"),
    "continue": _continue,
    "count": _count,
    "refer": _refer,
}


@pytest.mark.parametrize("going_on", [False, True], ids=["finished", "going on"])
@pytest.mark.parametrize("use", USES.values(), ids=USES)
async def test_a_foreign_id_is_an_unknown_one(use: Use, going_on: bool) -> None:
    """S8: the same status and the same bytes, for finished responses and for running ones."""
    slow = {"wait_for": "gate", **OK}
    async with scripted(slow if going_on else OK, OK, settings=TWO_KEYS) as (live, engine):
        async with connected(live) as wire:
            await wire.send(ask([{"id": "msg_mine", **user("secret")}], stream=True), headers=A)
            id = await wire.opened()
            if not going_on:
                await ended(live, id, "a")
            foreign = await use(live, id, "msg_mine")
            unknown = await use(live, "resp_0", "msg_0")
            assert foreign.status_code == unknown.status_code
            assert foreign.status_code in (400, 404)
            body = foreign.text.replace(id, "ID").replace("msg_mine", "MSG")
            assert body == unknown.text.replace("resp_0", "ID").replace("msg_0", "MSG")
            assert sorted(foreign.headers) == sorted(unknown.headers)
            engine.open_gate("gate")
            await ended(live, id, "a")
        mine: Json = (await live.http.get(f"/v1/responses/{id}", headers=A)).json()
        assert mine["status"] == "completed"
