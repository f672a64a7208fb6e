"""Reads a stream and proves that it is well formed (contract O4-O8, O10)."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any, cast

from openai import omit
from openai._models import construct_type_unchecked
from openai.lib.streaming.responses._responses import ResponseStreamState
from openai.types.responses import ResponseStreamEvent

from tests.support import spec

Json = dict[str, Any]

TERMINAL = ("response.completed", "response.incomplete", "response.failed")
DELTAS = {
    "response.output_text.delta": "response.output_text.done",
    "response.reasoning_text.delta": "response.reasoning_text.done",
    "response.reasoning.delta": "response.reasoning.done",
    "response.function_call_arguments.delta": "response.function_call_arguments.done",
}


@dataclass
class Stream:
    """The events of one stream, in order."""

    events: list[Json] = field(default_factory=list)

    @property
    def types(self) -> list[str]:
        """The types, each run of equal deltas written once."""
        found: list[str] = []
        for event in self.events:
            if not found or found[-1] != event["type"]:
                found.append(event["type"])
        return found

    @property
    def response(self) -> Json:
        """The response of the terminal event."""
        response: Json = self.events[-1]["response"]
        return response

    @property
    def text(self) -> str:
        """All text deltas."""
        return "".join(
            event["delta"] for event in self.events if event["type"] == "response.output_text.delta"
        )


def frames(data: bytes) -> list[tuple[str, bytes]]:
    """(event, data) of every frame; comments and keep-alives are left out, `[DONE]` is checked."""
    assert b"\r" not in data
    assert data.endswith(b"\n\n")
    blocks = [block for block in data.split(b"\n\n") if block and not block.startswith(b":")]
    assert blocks[-1] == b"data: [DONE]"
    found = []
    for block in blocks[:-1]:
        event, body = block.split(b"\n")
        assert event.startswith(b"event: ")
        assert body.startswith(b"data: ")
        if event != b"event: keepalive":
            found.append((event[7:].decode(), body[6:]))
    return found


def parse(data: bytes) -> Stream:
    """Read a stream and check it."""
    events = []
    for name, body in frames(data):
        event = json.loads(body.decode("utf-8"))
        assert event["type"] == name
        events.append(event)
    check(events)
    return Stream(events)


def check(events: list[Json]) -> None:
    """Order, numbers, identity, concatenation; schema; and the official accumulator."""
    assert [event["sequence_number"] for event in events] == list(range(len(events)))
    assert [event["type"] for event in events[:2]] == ["response.created", "response.in_progress"]
    assert [event["type"] in TERMINAL for event in events].count(True) == 1
    assert events[-1]["type"] in TERMINAL
    ids = {event["response"]["id"] for event in events if "response" in event}
    assert len(ids) == 1
    for event in events[:2]:
        assert event["response"]["output"] == []
        assert event["response"]["completed_at"] is None
    done = _check_items(events[2:-1])
    final = events[-1]["response"]
    assert final["output"] == done
    for item in done[:-1]:
        assert item["status"] == "completed"
    for event in events:
        spec.check_event(event)
    _check_with_sdk(events)


def _check_items(events: Iterable[Json]) -> list[Json]:
    done: list[Json] = []
    current: Json | None = None
    pieces: list[str] = []
    part: Json | None = None
    closed_text: str | None = None
    for event in events:
        kind = event["type"]
        assert event["output_index"] == len(done)
        if kind == "response.output_item.added":
            assert current is None
            current, pieces, part, closed_text = event["item"], [], None, None
            assert current["status"] == "in_progress"
            assert current.get("arguments", "") == ""
            assert current.get("content", []) == []
            continue
        assert current is not None
        if kind == "response.output_item.done":
            item = event["item"]
            assert (item["id"], item["type"]) == (current["id"], current["type"])
            assert item.get("call_id") == current.get("call_id")
            assert item["status"] in ("completed", "incomplete")
            assert part is None
            assert closed_text == _text(item)
            done.append(item)
            current = None
            continue
        assert event["item_id"] == current["id"]
        if "content_index" in event:
            assert event["content_index"] == 0
        if kind == "response.content_part.added":
            assert part is None
            part = event["part"]
            assert part["text"] == ""
        elif kind in DELTAS:
            assert closed_text is None
            assert part is not None or current["type"] == "function_call"
            assert "�" not in event["delta"]
            event["delta"].encode("utf-8")
            pieces.append(event["delta"])
        elif kind in DELTAS.values():
            closed_text = event.get("text", event.get("arguments"))
            assert closed_text == "".join(pieces)
            if current["type"] == "function_call":
                assert event["name"] == current["name"]
        elif kind == "response.content_part.done":
            assert part is not None
            assert event["part"]["text"] == closed_text
            part = None
        else:
            raise AssertionError(f"unexpected event {kind}")
    assert current is None
    return done


def _text(item: Json) -> str:
    if item["type"] == "function_call":
        return str(item["arguments"])
    assert len(item["content"]) == 1
    return str(item["content"][0]["text"])


def _check_with_sdk(events: list[Json]) -> None:
    """openai-python's accumulator takes every event, and ends with our response."""
    state: Any = ResponseStreamState(input_tools=omit, text_format=omit)
    for event in events:
        if event["type"].startswith("response.reasoning."):
            continue
        typed: Any = construct_type_unchecked(type_=cast(Any, ResponseStreamEvent), value=event)
        state.handle_event(typed)
    if events[-1]["type"] != "response.completed":
        return
    final = state._completed_response
    assert final is not None
    assert final.id == events[-1]["response"]["id"]
    assert [item.id for item in final.output] == [
        item["id"] for item in events[-1]["response"]["output"]
    ]
