"""Public bug reports, area D: reasoning models, and the round trip of sealed reasoning.

An engine says raw text as a model would; the real engine with a reasoning template is in
`tests/engines/test_model_text.py`.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from antiphon.config import Settings
from tests.support.bodies import OK, Json, text_of, user
from tests.support.cases import case, refused
from tests.support.live import Live, ask, scripted
from tests.support.streams import Stream

pytestmark = pytest.mark.anyio

SEALED = "reasoning.encrypted_content"
TRACE = "R-TEXT"
THINKS: Json = {"reasoning": TRACE, "chunks": ["4"]}


async def both(live: Live, body: Json) -> tuple[list[Json], Stream]:
    """The items of a request, ids left out, after it was seen that its stream has the same."""
    plain = await live.create(body)
    assert plain.status_code == 200, plain.text
    streamed = await live.stream(body)
    items = [_bare(item) for item in plain.json()["output"]]
    assert items == [_bare(item) for item in streamed.response["output"]]
    assert plain.json()["status"] == streamed.response["status"]
    return items, streamed


def _bare(item: Json) -> Json:
    return {key: value for key, value in item.items() if key != "id"}


def traces(items: list[Json]) -> list[str]:
    """The texts of the reasoning items."""
    return [item["content"][0]["text"] for item in items if item["type"] == "reasoning"]


def keyed(path: Path) -> Settings:
    """Two clients, and a key file of their server."""
    return Settings(api_key=("KEY_A", "KEY_B"), seal_key_file=path)


def bearer(key: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {key}"}


@pytest.mark.parametrize("stream", [False, True])
async def test_a_sealed_trace_comes_back_to_the_model_after_a_restart(
    tmp_path: Path, stream: bool
) -> None:
    """B023: without storage, with the same key file; replayed word for word."""
    settings = keyed(tmp_path / "seal.key")
    body = ask("Think, then say 4.", store=False, include=[SEALED])
    async with scripted(THINKS, settings=settings) as (live, _):
        if stream:
            streamed = await live.stream(body, headers=bearer("KEY_A"))
            response = streamed.response
            done = [e for e in streamed.events if e["type"] == "response.output_item.done"]
            assert done[0]["item"] == response["output"][0]
        else:
            response = (await live.create(body, headers=bearer("KEY_A"))).json()
    reasoning, message = response["output"]
    assert isinstance(reasoning["encrypted_content"], str)
    assert TRACE not in reasoning["encrypted_content"]
    # A client that keeps only the sealed form.
    reasoning["content"] = None
    history = [user("Think, then say 4."), reasoning, message, user("Why?")]
    async with case(OK, settings=settings, headers=bearer("KEY_A")) as (live, engine):
        again = ask(history, store=False)
        answer = await live.create(again, headers=bearer("KEY_A"))
        assert answer.status_code == 200, answer.text
        assert engine.calls[0].prompt.turns[1].reasoning == TRACE
        foreign = await live.create(again, headers=bearer("KEY_B"))
        refused(foreign, "input[1].encrypted_content", code="invalid_encrypted_content")
        blob = reasoning["encrypted_content"]
        reasoning["encrypted_content"] = blob[:40] + ("A" if blob[40] != "A" else "B") + blob[41:]
        changed = await live.create(again, headers=bearer("KEY_A"))
        refused(changed, "input[1].encrypted_content", code="invalid_encrypted_content")
        assert len(engine.calls) == 1


@pytest.mark.parametrize("stream", [False, True])
async def test_a_trace_is_not_sealed_unless_asked_for(stream: bool) -> None:
    """B023: absent or null without the include."""
    async with case(THINKS) as (live, _):
        if stream:
            output = (await live.stream(ask())).response["output"]
        else:
            output = (await live.create(ask())).json()["output"]
        assert output[0]["type"] == "reasoning"
        assert output[0].get("encrypted_content") is None


async def test_a_template_that_opens_the_trace_is_believed() -> None:
    """B070: reasoning from the first token."""
    script = {"prompt_ends_with": "<think>\n", "chunks": ["I add", ".</think>\n\n", "4"]}
    async with case(script) as (live, _):
        items, streamed = await both(live, ask("2+2?"))
        assert traces(items) == ["I add."]
        assert streamed.text == "4"


async def test_a_trace_cut_by_the_limit_is_no_answer() -> None:
    """B071: one incomplete reasoning item, no message."""
    script = {
        "prompt_ends_with": "<think>",
        "chunks": ["long ", "thought ", "without end"],
        "finish": "length",
    }
    async with case(script, script, OK) as (live, _):
        items, streamed = await both(live, ask("2+2?", max_output_tokens=16))
        assert streamed.response["status"] == "incomplete"
        assert streamed.response["incomplete_details"] == {"reason": "max_output_tokens"}
        assert [(item["type"], item["status"]) for item in items] == [("reasoning", "incomplete")]
        assert traces(items) == ["long thought without end"]
        assert streamed.text == ""


async def test_markers_in_pieces_and_repeated_traces_are_read() -> None:
    """B072: text and traces in order, an item each; no piece of a marker shows."""
    script = {"chunks": ["<th", "ink>r1</th", "ink>A<thi", "nk>r2</think", ">B"]}
    async with case(script) as (live, _):
        items, streamed = await both(live, ask("x"))
        assert [item["type"] for item in items] == ["reasoning", "message"] * 2
        assert traces(items) == ["r1", "r2"]
        assert streamed.text == text_of(streamed.response) == "AB"


async def test_a_marker_that_an_ordinary_model_quotes_is_text() -> None:
    """B073: for a model that has no trace."""
    script = {"reasoning_model": False, "chunks": ["Use `<think>draft", "</think>` here."]}
    async with case(script) as (live, _):
        items, streamed = await both(live, ask("x"))
        assert [item["type"] for item in items] == ["message"]
        assert streamed.text == "Use `<think>draft</think>` here."


@pytest.mark.parametrize("open_responses", [False, True])
async def test_a_trace_has_a_whole_life_in_the_stream(open_responses: bool) -> None:
    """B074: one name for its events, chosen by a header; closed before the message opens."""
    headers = {"OpenResponses-Version": "1"} if open_responses else None
    name = "response.reasoning" if open_responses else "response.reasoning_text"
    body = ask("2+2?", reasoning={"effort": "low", "summary": "auto"})
    async with case({"reasoning": ["be", "cause"], "chunks": ["4"]}) as (live, _):
        streamed = await live.stream(body, headers=headers)
        assert streamed.types[2:9] == [
            "response.output_item.added",
            "response.content_part.added",
            f"{name}.delta",
            f"{name}.done",
            "response.content_part.done",
            "response.output_item.done",
            "response.output_item.added",
        ]
        item = streamed.response["output"][0]
        assert streamed.events[2]["item"]["summary"] == item["summary"] == []
        own = streamed.events[3:8]
        assert {event["item_id"] for event in own} == {item["id"]}
        assert {event["output_index"] for event in own} == {0}


SCHEMA: Json = {
    "type": "object",
    "properties": {"city": {"type": "string"}},
    "required": ["city"],
    "additionalProperties": False,
}
FORMAT: Json = {"format": {"type": "json_schema", "name": "c", "strict": True, "schema": SCHEMA}}


async def test_a_trace_may_come_before_demanded_json() -> None:
    """B076: then one message, and nothing but the document in it."""
    script = {"chunks": ["<think>Hm", ".</think>\n\n", '{"city": ', '"Rome"}']}
    async with case(script, script, OK) as (live, engine):
        items, streamed = await both(live, ask("Give a city.", text=FORMAT))
        assert [item["type"] for item in items] == ["reasoning", "message"]
        assert streamed.text == '{"city": "Rome"}'
        assert engine.calls[0].prompt.output is not None
        assert engine.calls[0].prompt.output.schema == SCHEMA


async def test_a_trace_that_uses_up_the_limit_leaves_no_empty_document() -> None:
    """B076: incomplete, not a completed empty message."""
    script = {"chunks": ["<think>Hm, "], "infinite": True}
    async with case(script, script, OK) as (live, _):
        items, streamed = await both(live, ask(text=FORMAT, max_output_tokens=20))
        assert streamed.response["status"] == "incomplete"
        assert [(item["type"], item["status"]) for item in items] == [("reasoning", "incomplete")]
