"""Public bug reports, area G: stored responses and their chains."""

from __future__ import annotations

from typing import Any

import pytest

from antiphon.config import Settings
from antiphon.store.base import Limits
from antiphon.store.memory import MemoryStore
from tests.support.bodies import CALLS_WEATHER, OK, WEATHER, Json, call, output, turns, user
from tests.support.cases import case, refused
from tests.support.live import Live, ask
from tests.support.wire import connected

pytestmark = pytest.mark.anyio

TWO_KEYS = Settings(api_key=("a:KEY_A", "b:KEY_B"))
A = {"Authorization": "Bearer KEY_A"}
B = {"Authorization": "Bearer KEY_B"}


async def made(live: Live, text: Any = "t", **more: Any) -> Json:
    """Create a response that must succeed."""
    answer = await live.create(ask(text, **more))
    assert answer.status_code == 200, answer.text
    response: Json = answer.json()
    return response


async def test_a_chain_replays_what_was_said() -> None:
    """B094 (C7): the earlier input and answer, without the earlier instructions."""
    async with case({"chunks": ["Noted", "."]}) as (live, engine):
        first = await made(live, "My code is 7Q.", instructions="Be brief.")
        second = await made(live, "Repeat my code.", previous_response_id=first["id"])
        assert turns(engine) == [
            ("user", "My code is 7Q."),
            ("assistant", "Noted."),
            ("user", "Repeat my code."),
        ]
        assert second["usage"]["input_tokens"] > first["usage"]["input_tokens"]


async def test_a_chain_replays_calls_outputs_and_reasoning_in_their_place() -> None:
    """B094 (I8): one assistant turn with trace and call, then the result."""
    script = {"reasoning": "I must look.", **CALLS_WEATHER}
    async with case(script, OK) as (live, engine):
        first = await made(live, "Rome?", tools=[WEATHER])
        made_call = first["output"][1]["call_id"]
        await made(live, [output(made_call, "sunny")], previous_response_id=first["id"])
        assert turns(engine) == [("user", "Rome?"), ("assistant", ""), ("tool", "sunny")]
        seen = engine.calls[1].prompt.turns
        assert seen[1].reasoning == "I must look."
        assert [item.call_id for item in seen[1].calls] == [seen[2].call_id] == [made_call]


async def test_instructions_are_not_inherited_but_system_items_are() -> None:
    """B095 (C3): each request has its own instructions."""
    system = {"role": "system", "content": "STAYS"}
    async with case(OK) as (live, engine):
        first = await made(live, [system, user("hi")], instructions="INSTR-ONE")
        second = await made(
            live, "again", instructions="INSTR-TWO", previous_response_id=first["id"]
        )
        assert [text for role, text in turns(engine) if role == "system"] == ["INSTR-TWO", "STAYS"]
        third = await made(live, "again", previous_response_id=second["id"])
        assert [text for role, text in turns(engine) if role == "system"] == ["STAYS"]
        assert third["instructions"] is None


async def test_chaining_at_once_always_works() -> None:
    """B097 (S4): the response is stored before the terminal event goes out."""
    async with case(OK) as (live, _):
        for _ in range(50):
            async with connected(live) as wire:
                await wire.send(ask("hi", stream=True))
                id = await wire.opened()
                await wire.until(b"event: response.completed\n")
                await made(live, "and?", previous_response_id=id)
                stored = (await live.http.get(f"/v1/responses/{id}")).json()
                assert stored["status"] == "completed"


async def test_the_parent_is_echoed_and_branches_do_not_meet() -> None:
    """B098: previous_response_id in body, events and stored response."""
    async with case(OK) as (live, engine):
        parent = (await made(live, "hi"))["id"]
        one = await made(live, "branch one", previous_response_id=parent)
        two = await live.stream(ask("branch two", previous_response_id=parent))
        stored = (await live.http.get(f"/v1/responses/{one['id']}")).json()
        for response in (one, stored, two.events[0]["response"], two.response):
            assert response["previous_response_id"] == parent
        assert turns(engine) == [("user", "hi"), ("assistant", "ok"), ("user", "branch two")]


async def test_store_means_what_it_says() -> None:
    """B101 (C10): true and the default are readable, false is neither readable nor chainable."""
    async with case(OK) as (live, _):
        for fields in ({"store": True}, {}):
            kept = await made(live, **fields)
            stored = await live.http.get(f"/v1/responses/{kept['id']}")
            assert stored.status_code == 200
            assert stored.json() == kept
            assert kept["store"] is True
        gone = await made(live, store=False)
        assert gone["store"] is False
        missing = await live.http.get(f"/v1/responses/{gone['id']}")
        refused(missing, None, status=404, code="response_not_found")
        refused(
            await live.create(ask("x", previous_response_id=gone["id"])),
            "previous_response_id",
            code="previous_response_not_found",
        )


async def test_where_storage_is_off_no_response_claims_to_be_stored() -> None:
    """B101: store is echoed false, and reading says which setting is off."""
    async with case(OK, settings=Settings(responses_store_max_entries=0)) as (live, _):
        response = await made(live, store=True)
        assert response["store"] is False
        message = refused(await live.http.get(f"/v1/responses/{response['id']}"), None)
        assert "--responses-store-max-entries" in message


async def test_every_input_item_can_be_read_back() -> None:
    """B107 (S6): whatever create took, input_items gives."""
    items = [
        {"type": "reasoning", "id": "rs_1", "summary": []},
        user("hi"),
        call("a", "f", "{}"),
        output("a", [{"type": "input_text", "text": "x"}]),
        {"type": "web_search_call", "status": "failed", "action": {"type": "search"}},
        {"type": "mcp_list_tools", "server_label": "s", "tools": [], "error": None},
        {"role": "assistant", "content": [{"type": "refusal", "refusal": "No."}]},
        user([]),
    ]
    async with case(OK) as (live, _):
        id = (await made(live, items))["id"]
        answer = await live.http.get(f"/v1/responses/{id}/input_items?order=asc")
        assert answer.status_code == 200, answer.text
        found = answer.json()["data"]
        assert [item["type"] for item in found] == [item.get("type", "message") for item in items]
        assert found[4]["action"] == {"type": "search"}
        assert all(item["id"] for item in found)
        await made(live, "go on", previous_response_id=id)
        await made(live, [*found, user("again")])


async def test_an_item_that_is_refused_writes_nothing() -> None:
    """B107: kinds that are not served are 400 at create."""
    async with case(OK) as (live, engine):
        for item, param in (
            ({"type": "compaction", "encrypted_content": "x"}, "input[1]"),
            ({"type": "additional_tools", "role": "user", "tools": []}, "input[1].type"),
        ):
            answer = await live.create(ask([user("hi"), item]))
            refused(answer, param, code="unsupported_feature")
        assert engine.calls == []


async def test_another_key_finds_nothing() -> None:
    """B108 (S8): every way to an id answers as for one that was never issued."""
    async with case(OK, settings=TWO_KEYS, headers=A) as (live, engine):
        mine = (await live.create(ask("secret"), headers=A)).json()
        id, item = mine["id"], mine["output"][0]["id"]
        never_id, never_item = "resp_" + "0" * 32, "msg_" + "0" * 32

        async def answers(id: str, item: str) -> list[tuple[int, str]]:
            path = f"/v1/responses/{id}"
            reference = [{"type": "item_reference", "id": item}, user("x")]
            found = [
                await live.http.get(path, headers=B),
                await live.http.get(f"{path}/input_items", headers=B),
                await live.http.get(f"{path}?stream=true", headers=B),
                await live.http.post(f"{path}/cancel", headers=B),
                await live.http.delete(path, headers=B),
                await live.create(ask("x", previous_response_id=id), headers=B),
                await live.create(ask(reference), headers=B),
            ]
            return [
                (each.status_code, each.text.replace(id, "ID").replace(item, "ITEM"))
                for each in found
            ]

        foreign = await answers(id, item)
        assert foreign == await answers(never_id, never_item)
        assert [status for status, _ in foreign] == [404, 404, 404, 404, 404, 400, 404]
        assert len(engine.calls) == 1
        assert (await live.http.get(f"/v1/responses/{id}", headers=A)).json() == mine


async def test_input_items_come_in_pages() -> None:
    """B109 (E5): ids are made once, pages have no gaps, the newest comes first by default."""

    def texts(page: Json) -> list[str]:
        return [item["content"][0]["text"] for item in page["data"]]

    async with case(OK) as (live, _):
        id = (await made(live, [user(f"m{n}") for n in range(5)]))["id"]
        path = f"/v1/responses/{id}/input_items?limit=2"
        first = (await live.http.get(f"{path}&order=asc")).json()
        assert first["object"] == "list"
        assert texts(first) == ["m0", "m1"]
        assert first["has_more"] is True
        assert [first["first_id"], first["last_id"]] == [item["id"] for item in first["data"]]
        second = (await live.http.get(f"{path}&order=asc&after={first['last_id']}")).json()
        third = (await live.http.get(f"{path}&order=asc&after={second['last_id']}")).json()
        assert (texts(second), texts(third)) == (["m2", "m3"], ["m4"])
        assert third["has_more"] is False
        assert texts((await live.http.get(path)).json()) == ["m4", "m3"]
        refused(await live.http.get(f"{path}&after=nope"), "after")


async def test_a_chained_response_lists_its_own_input_only() -> None:
    """B109: the items of its parents are listed under the parents."""
    async with case(OK) as (live, _):
        parent = (await made(live, "one"))["id"]
        child = (await made(live, "two", previous_response_id=parent))["id"]
        page = (await live.http.get(f"/v1/responses/{child}/input_items")).json()
        assert [item["content"][0]["text"] for item in page["data"]] == ["two"]


async def test_the_store_is_bounded() -> None:
    """B110 (S2): the oldest goes, whole, and is then unknown."""
    store = MemoryStore(Limits(entries=20))
    async with case(OK, store=store) as (live, _):
        ids = []
        sizes = []
        for _ in range(50):
            ids.append((await made(live))["id"])
            sizes.append(store.stats().bytes)
            assert store.stats().entries <= 20
        assert max(sizes[20:]) == sizes[19]
        gone = await live.http.get(f"/v1/responses/{ids[0]}")
        refused(gone, None, status=404, code="response_not_found")
        refused(
            await live.create(ask("x", previous_response_id=ids[0])),
            "previous_response_id",
            code="previous_response_not_found",
        )
        assert (await live.http.get(f"/v1/responses/{ids[-1]}")).status_code == 200


async def test_a_chain_may_be_very_long() -> None:
    """B111 (S5): no recursion, the store grows linearly, a parent may be deleted."""
    store = MemoryStore(Limits(entries=10_000))
    async with case({"chunks": ["k"]}, store=store) as (live, engine):
        ids: list[str | None] = [None]
        sizes = []
        for _ in range(1200):
            ids.append((await made(live, previous_response_id=ids[-1]))["id"])
            sizes.append(store.stats().bytes)
        assert sizes[1199] - sizes[599] == sizes[899] - sizes[299]
        assert (await live.http.delete(f"/v1/responses/{ids[600]}")).status_code == 200
        # Far enough from the newest ones that nothing of its history is at hand.
        await made(live, "old", previous_response_id=ids[1100])
        assert len(engine.calls[-1].prompt.turns) == 2201
        counted = await live.http.post(
            "/v1/responses/input_tokens", json=ask("old", previous_response_id=ids[1100])
        )
        assert counted.json()["input_tokens"] > 2201


async def test_a_chain_that_outgrows_the_window_is_refused() -> None:
    """B111: context_length_exceeded, and the chain is still there."""
    async with case(OK, context_window=64) as (live, _):
        previous: str | None = None
        for _ in range(40):
            answer = await live.create(ask("some words", previous_response_id=previous))
            if answer.status_code != 200:
                break
            previous = answer.json()["id"]
        refused(answer, "input", code="context_length_exceeded")
        assert (await live.http.get(f"/v1/responses/{previous}")).status_code == 200


async def test_a_deleted_response_is_gone_and_its_children_stay() -> None:
    """B112 (E3, S5): 404 afterwards; a child keeps its history."""
    async with case(OK) as (live, engine):
        id = (await made(live, "one"))["id"]
        child = (await made(live, "two", previous_response_id=id))["id"]
        answer = await live.http.delete(f"/v1/responses/{id}")
        assert answer.status_code == 200
        assert answer.json() == {"id": id, "object": "response", "deleted": True}
        for missing in (
            await live.http.get(f"/v1/responses/{id}"),
            await live.http.delete(f"/v1/responses/{id}"),
            await live.http.delete("/v1/responses/resp_nope"),
        ):
            refused(missing, None, status=404, code="response_not_found")
        refused(
            await live.create(ask("x", previous_response_id=id)),
            "previous_response_id",
            code="previous_response_not_found",
        )
        await made(live, "three", previous_response_id=child)
        assert [text for _, text in turns(engine)] == ["one", "ok", "two", "ok", "three"]
