"""Properties of the event builder: whatever an engine says, the stream is well formed."""

from __future__ import annotations

import itertools
import json
from collections.abc import Sequence

from hypothesis import given
from hypothesis import strategies as st
from pydantic import TypeAdapter

from antiphon.core.events import EventBuilder, Frame
from antiphon.engine.types import (
    CallArguments,
    CallEnd,
    CallStart,
    Delta,
    Finish,
    Prefill,
    Reasoning,
    Text,
    TokenLogprob,
    Usage,
)
from antiphon.schema.events import StreamEvent
from antiphon.schema.response import Response, ResponseError
from tests.support.streams import check

# No half surrogate: the engine contract promises complete Unicode.
TEXTS = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=8)
LOGPROBS = st.builds(
    TokenLogprob,
    token=TEXTS,
    logprob=st.floats(-30, 0),
    bytes=st.tuples(st.integers(0, 255)),
    top=st.just(()),
)
SPOKEN = st.one_of(
    st.builds(Text, TEXTS, st.lists(LOGPROBS, max_size=2).map(tuple)),
    st.builds(Reasoning, TEXTS),
    st.builds(
        lambda name, pieces: [CallStart(name), *map(CallArguments, pieces)],
        st.sampled_from(["f", "get_weather"]),
        st.lists(TEXTS, max_size=3),
    ),
    st.builds(lambda name: [CallStart(name), CallEnd()], st.just("g")),
)
EVENT: TypeAdapter[StreamEvent] = TypeAdapter(StreamEvent)


def _flat(spoken: Sequence[Delta | list[Delta]]) -> list[Delta]:
    return [delta for one in spoken for delta in (one if isinstance(one, list) else [one])]


def _builder(*, obfuscate: bool = False, open_responses: bool = False) -> EventBuilder:
    numbers = itertools.count()
    response = Response(id="resp_1", created_at=1, status="in_progress", model="m")
    return EventBuilder(
        response,
        lambda prefix: f"{prefix}_{next(numbers)}",
        obfuscate=obfuscate,
        open_responses=open_responses,
    )


def _run(deltas: Sequence[Delta], end: str, **options: bool) -> tuple[list[Frame], Response]:
    builder = _builder(**options)
    frames = builder.start()
    for delta in deltas:
        frames += builder.feed(delta)
    if end == "fail":
        frames += builder.fail(ResponseError(code="server_error", message="no"))
    elif end == "cancel":
        frames += builder.cancel()
    else:
        frames += builder.feed(Usage(3, len(deltas)))
        frames += builder.feed(Finish("length" if end == "length" else "stop"))
        frames += builder.finish(2)
    frames.append(builder.terminal())
    return frames, builder.response


@given(
    st.lists(SPOKEN, max_size=8),
    st.sampled_from(["stop", "length", "fail", "cancel"]),
    st.booleans(),
    st.booleans(),
)
def test_any_sequence_of_deltas_makes_a_stream_that_every_judge_accepts(
    spoken: list[Delta | list[Delta]], end: str, obfuscate: bool, open_responses: bool
) -> None:
    """O4, O5, O7, O8, O9, O10: order, numbers, identity; schema; openai-python's accumulator."""
    frames, response = _run(
        [Prefill(), *_flat(spoken)], end, obfuscate=obfuscate, open_responses=open_responses
    )

    events = [json.loads(frame.data) for frame in frames]
    check(events)
    assert events[-1]["response"] == json.loads(response.encode())
    for frame in frames:
        assert b"\n" not in frame.data
        assert json.loads(EVENT.validate_json(frame.data).encode()) == json.loads(frame.data)


@given(st.lists(SPOKEN, max_size=6), st.data())
def test_a_split_changes_no_item(spoken: list[Delta | list[Delta]], data: st.DataObject) -> None:
    """O10: the same text in other pieces gives the same items."""
    deltas = _flat(spoken)
    pieces: list[Delta] = []
    for delta in deltas:
        if isinstance(delta, Text | Reasoning | CallArguments) and len(delta.text) > 1:
            at = data.draw(st.integers(1, len(delta.text) - 1))
            head, tail = delta.text[:at], delta.text[at:]
            if isinstance(delta, Text):
                pieces += [Text(head, delta.logprobs), Text(tail)]
            else:
                pieces += [type(delta)(head), type(delta)(tail)]
        else:
            pieces.append(delta)

    assert _run(deltas, "stop")[1].output == _run(pieces, "stop")[1].output


@given(st.lists(SPOKEN, min_size=1, max_size=6))
def test_an_item_is_the_same_bytes_wherever_it_appears(
    spoken: list[Delta | list[Delta]],
) -> None:
    """O4: done event, terminal event and stored document hold the same bytes of an item."""
    frames, response = _run(_flat(spoken), "stop")

    stored = response.encode()
    for item in response.output:
        encoded = item.encode()
        assert encoded in stored
        assert encoded in frames[-1].data
        assert any(
            encoded in frame.data for frame in frames if frame.type == "response.output_item.done"
        )


def test_a_call_without_arguments_has_an_empty_object() -> None:
    """T2, B019: arguments of a completed call are always JSON."""
    frames, response = _run([CallStart("f")], "stop")

    check([json.loads(frame.data) for frame in frames])
    assert response.output[0].arguments == "{}"  # type: ignore[union-attr]


def test_nothing_at_all_is_an_empty_message() -> None:
    """B059: zero tokens are one message with empty text, opened and closed."""
    frames, response = _run([], "stop")

    check([json.loads(frame.data) for frame in frames])
    assert [item.type for item in response.output] == ["message"]


def test_a_cut_trace_has_no_empty_message_behind_it() -> None:
    """R3, O5: cut in the middle of thinking."""
    _, response = _run([Reasoning("long thought")], "length")

    assert [(item.type, item.status) for item in response.output] == [("reasoning", "incomplete")]
    assert response.status == "incomplete"
