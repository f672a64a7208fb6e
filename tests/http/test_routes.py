"""Which paths exist, what they answer, and that every error has the envelope."""

from __future__ import annotations

import pytest

from antiphon.config import Settings
from antiphon.engine.types import Prepared, Prompt
from antiphon.engines.scripted import ScriptedEngine
from tests.support.bodies import OK, WEATHER, call, output, user
from tests.support.cases import refused
from tests.support.live import Live, ask, error_of, running, scripted
from tests.support.wire import connected, happens

pytestmark = pytest.mark.anyio


async def test_create_answers_json_or_a_stream() -> None:
    """E1."""
    async with scripted(OK) as (live, _):
        plain = await live.create(ask())
        assert plain.headers["content-type"] == "application/json"
        assert plain.json()["object"] == "response"
        assert (await live.stream(ask())).types[-1] == "response.completed"


async def test_a_stored_response_is_read_back_byte_for_byte() -> None:
    """E2 (O4): GET gives the bytes that create gave; it cannot be streamed afterwards."""
    async with scripted(OK) as (live, _):
        made = await live.create(ask())
        path = f"/v1/responses/{made.json()['id']}"
        assert (await live.http.get(path)).content == made.content
        included = await live.http.get(f"{path}?include[]=message.output_text.logprobs")
        assert included.content == made.content
        refused(await live.http.get(f"{path}?stream=true"), "stream", code="unsupported_feature")


async def test_a_response_that_is_going_on_can_be_read_but_not_deleted() -> None:
    """E2, E3: in_progress without output; DELETE says to cancel it first."""
    async with scripted({"chunks": ["ok"], "wait_for": "gate"}) as (live, engine):
        async with connected(live) as wire:
            await wire.send(ask(stream=True))
            id = await wire.opened()
            state = (await live.http.get(f"/v1/responses/{id}")).json()
            assert (state["status"], state["output"]) == ("in_progress", [])
            message = refused(await live.http.delete(f"/v1/responses/{id}"), None)
            assert "cancel it first" in message
            engine.open_gate("gate")
            await wire.until(b"data: [DONE]\n\n")
        assert (await live.http.delete(f"/v1/responses/{id}")).json() == {
            "id": id,
            "object": "response",
            "deleted": True,
        }
        refused(
            await live.http.delete(f"/v1/responses/{id}"),
            None,
            status=404,
            code="response_not_found",
        )


async def test_cancel_answers_after_the_engine_has_stopped() -> None:
    """E4: the stream ends with response.failed, and the stored response is cancelled."""
    async with scripted({"infinite": True, "chunks": ["x "]}, OK) as (live, engine):
        async with connected(live) as wire:
            await wire.send(ask(stream=True))
            id = await wire.opened()
            await wire.until(b"event: response.output_text.delta\n")
            answer = await live.http.post(f"/v1/responses/{id}/cancel")
            assert engine.calls[0].ended.is_set()
            assert answer.status_code == 200
            assert answer.json()["status"] == "cancelled"
            end = await wire.until(b"data: [DONE]\n\n")
            assert b"event: response.failed\n" in end
        assert (await live.http.get(f"/v1/responses/{id}")).content == answer.content


async def test_cancel_of_a_queued_request_never_reaches_the_engine() -> None:
    """E4: its place in the queue is free again."""
    async with scripted({"wait_for": "gate", **OK}, slots=1) as (live, engine):
        async with connected(live) as first, connected(live) as second:
            await first.send(ask("first", stream=True))
            await first.opened()
            await second.send(ask("second", stream=True))
            id = await second.opened()
            answer = await live.http.post(f"/v1/responses/{id}/cancel")
            assert (answer.json()["status"], answer.json()["output"]) == ("cancelled", [])
            engine.open_gate("gate")
            await first.until(b"data: [DONE]\n\n")
        assert len(engine.calls) == 1


async def test_cancel_of_a_finished_response_returns_it_unchanged() -> None:
    """E4."""
    async with scripted(OK) as (live, _):
        made = await live.create(ask())
        path = f"/v1/responses/{made.json()['id']}/cancel"
        assert (await live.http.post(path)).content == made.content
        refused(
            await live.http.post("/v1/responses/resp_nope/cancel"),
            None,
            status=404,
            code="response_not_found",
        )


async def test_pages_of_input_items() -> None:
    """E5: before and after, limits, and an empty page."""
    async with scripted(OK) as (live, _):
        id = (await live.create(ask([user(f"m{n}") for n in range(5)]))).json()["id"]
        path = f"/v1/responses/{id}/input_items"

        async def page(query: str) -> list[str]:
            found = (await live.http.get(f"{path}?order=asc&{query}")).json()
            return [item["content"][0]["text"] for item in found["data"]]

        ids = [item["id"] for item in (await live.http.get(f"{path}?order=asc")).json()["data"]]
        assert await page(f"before={ids[2]}") == ["m0", "m1"]
        assert await page(f"before={ids[4]}&limit=2") == ["m2", "m3"]
        assert await page(f"after={ids[0]}&before={ids[3]}") == ["m1", "m2"]
        last = (await live.http.get(f"{path}?order=asc&after={ids[4]}")).json()
        assert last == {
            "object": "list",
            "data": [],
            "first_id": None,
            "last_id": None,
            "has_more": False,
        }
        for limit in ("0", "101", "x"):
            refused(await live.http.get(f"{path}?limit={limit}"), "limit")
        refused(await live.http.get(f"{path}?order=up"), "order")


async def test_input_tokens_counts_what_the_engine_would_read() -> None:
    """E7: with instructions, tools, calls and the chain applied; nothing is generated."""
    async with scripted(OK) as (live, engine):
        parent = (await live.create(ask("first"))).json()["id"]
        history = [user("Rome?"), call("a"), output("a", "sunny")]
        body = ask(history, instructions="Be brief.", tools=[WEATHER], previous_response_id=parent)
        counted = await live.http.post("/v1/responses/input_tokens", json=body)
        assert len(engine.calls) == 1
        usage = (await live.create(body)).json()["usage"]
        assert counted.json() == {
            "object": "response.input_tokens",
            "input_tokens": usage["input_tokens"],
        }


async def test_input_tokens_counts_more_than_fits() -> None:
    """E7: a prompt over the window is counted, not refused."""
    async with scripted(OK, context_window=64) as (live, _):
        counted = await live.http.post("/v1/responses/input_tokens", json=ask("word " * 100))
        assert counted.json()["input_tokens"] == 128


async def test_models_are_listed_with_their_other_names() -> None:
    """E9 (C1): id, alias and `default` mean the model; an alias may hold a slash."""
    settings = Settings(alias=("gpt-x", "org/small"))
    async with scripted(OK, settings=settings) as (live, _):
        page = (await live.http.get("/v1/models")).json()
        assert page["object"] == "list"
        (model,) = page["data"]
        assert (model["id"], model["object"]) == ("scripted", "model")
        assert model["aliases"] == ["gpt-x", "org/small"]
        assert isinstance(model["created"], int)
        for name in ("scripted", "gpt-x", "org/small", "default"):
            assert (await live.http.get(f"/v1/models/{name}")).json() == model
            assert (await live.create({"model": name, "input": "x"})).json()["model"] == name
        unknown = await live.http.get("/v1/models/other")
        refused(unknown, "model", status=404, code="model_not_found")


async def test_health_is_public_and_ready_tells_of_the_engine() -> None:
    """E10: without a key; ready is 503 while the engine loads."""
    engine = ScriptedEngine(OK)
    async with running(engine, Settings(api_key=("KEY",))) as live:
        assert (await live.http.get("/health")).json()["status"] == "ok"
        assert (await live.http.get("/ready")).json() == {"status": "ready"}
        engine.ready = False
        loading = await live.http.get("/v1/ready")
        assert (loading.status_code, loading.json()) == (503, {"status": "loading"})
        assert (await live.http.get("/health")).status_code == 200
        assert (await live.http.get("/models")).status_code == 401


async def every_route(live: Live, base: str) -> list[int]:
    """The status of a plain use of each route."""
    made = await live.http.post(f"{base}/responses", json=ask())
    path = f"{base}/responses/{made.json().get('id')}"
    answers = [
        made,
        await live.http.get(path),
        await live.http.get(f"{path}/input_items"),
        await live.http.post(f"{path}/cancel"),
        await live.http.post(f"{base}/responses/input_tokens", json=ask()),
        await live.http.get(f"{base}/models"),
        await live.http.get(f"{base}/models/scripted"),
        await live.http.get(f"{base}/health"),
        await live.http.get(f"{base}/ready"),
        await live.http.delete(path),
    ]
    return [answer.status_code for answer in answers]


@pytest.mark.parametrize("prefix", ["", "/ai/here"])
async def test_every_route_is_there_with_and_without_v1(prefix: str) -> None:
    """E13, E16: and under the prefix only."""
    async with scripted(OK, settings=Settings(api_prefix=prefix)) as (live, _):
        for base in ("/v1", ""):
            assert await every_route(live, base) == [200] * 10
        if prefix:
            outside = await live.http.get(f"http://127.0.0.1:{live.port}/v1/models")
            refused(outside, None, status=404)


async def test_fixed_words_are_never_read_as_ids() -> None:
    """E14: GET on them is 405, as on any POST route."""
    async with scripted(OK) as (live, _):
        for word in ("compact", "input_tokens"):
            for method in ("GET", "DELETE"):
                answer = await live.http.request(method, f"/v1/responses/{word}")
                refused(answer, None, status=405)
                assert answer.headers["allow"] == "POST"


@pytest.mark.parametrize(
    ("method", "path", "allow"),
    [
        ("GET", "/v1/responses", "POST"),
        ("PUT", "/v1/responses/resp_1", "DELETE, GET, HEAD"),
        ("GET", "/v1/responses/resp_1/cancel", "POST"),
        ("POST", "/v1/models", "GET, HEAD"),
        ("PATCH", "/v1/responses", "POST"),
    ],
)
async def test_a_wrong_method_is_405_with_allow(method: str, path: str, allow: str) -> None:
    """E15."""
    async with scripted(OK) as (live, _):
        answer = await live.http.request(method, path)
        refused(answer, None, status=405)
        assert sorted(answer.headers["allow"].split(", ")) == allow.split(", ")


@pytest.mark.parametrize(
    "path", ["/", "/v1", "/v2/responses", "/v1/responses/", "/v1/responses/a/b", "/v1//responses"]
)
async def test_an_unknown_path_is_404(path: str) -> None:
    """E15: no redirects, always the envelope."""
    async with scripted(OK) as (live, _):
        refused(await live.http.get(path), None, status=404)


async def test_a_websocket_upgrade_is_426() -> None:
    """E12: the transport is off."""
    async with scripted(OK) as (live, _):
        headers = {
            "Connection": "Upgrade",
            "Upgrade": "websocket",
            "Sec-WebSocket-Key": "x" * 22 + "==",
            "Sec-WebSocket-Version": "13",
        }
        answer = await live.http.get("/v1/responses", headers=headers)
        refused(answer, None, status=426)
        assert "upgrade" in answer.headers


async def test_every_answer_has_a_request_id() -> None:
    """O15: a client's own is taken where it is harmless."""
    async with scripted(OK, settings=Settings(api_key=("KEY",))) as (live, _):
        key = {"Authorization": "Bearer KEY"}
        answers = [
            await live.http.get("/health"),
            await live.http.get("/v1/models"),
            await live.http.get("/nowhere", headers=key),
            await live.http.get("/v1/responses", headers=key),
            await live.http.post("/v1/responses", headers=key),
            await live.create(ask(), headers=key),
            await live.create(ask(stream=True), headers=key),
        ]
        ids = [answer.headers["x-request-id"] for answer in answers]
        assert all(id.startswith("req_") for id in ids)
        assert len(set(ids)) == len(ids)
        for given, taken in (("my-id.1", True), ("x" * 129, False), ("a b", False)):
            answer = await live.create(ask(), headers={**key, "X-Request-Id": given})
            assert (answer.headers["x-request-id"] == given) is taken


class Broken(ScriptedEngine):
    """An engine with a fault that nobody foresaw."""

    async def prepare(self, prompt: Prompt) -> Prepared:
        raise RuntimeError("secret detail")


async def test_a_crash_is_a_generic_500_with_a_request_id() -> None:
    """O15, O11: no detail goes out, and the server lives on."""
    async with running(Broken(OK)) as live:
        answer = await live.create(ask())
        assert answer.status_code == 500
        assert "secret" not in answer.text
        assert error_of(answer)["type"] == "server_error"
        assert answer.headers["x-request-id"].startswith("req_")
        assert (await live.http.get("/health")).status_code == 200


async def test_an_answer_ends_only_after_the_engine_let_go() -> None:
    """E1: the slot is free when the answer is there."""
    async with scripted(OK, slots=1) as (live, engine):
        for _ in range(3):
            await live.create(ask())
            await happens(engine.calls[-1].ended)
            assert engine.slots.running == 0
