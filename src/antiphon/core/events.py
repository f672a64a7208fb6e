"""Deltas become ordered, numbered events and the final response.

Decides what is open, what closes when, every index and every sequence number (contract O4-O8).
It is pure: ids and times are given, nothing is stored or sent. An illegal order cannot be
written, because only this object opens and closes items and parts.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable, Mapping
from json.encoder import encode_basestring
from typing import Literal, NamedTuple

from antiphon.core.openitem import (
    CALLS,
    Ending,
    OpenCall,
    OpenCustom,
    OpenItem,
    OpenReasoning,
    OpenSearch,
    OpenText,
)
from antiphon.core.toolbox import Route
from antiphon.engine.types import (
    CallArguments,
    CallEnd,
    CallStart,
    Delta,
    Finish,
    Prefill,
    TokenLogprob,
    Usage,
)
from antiphon.engine.types import Reasoning as ReasoningPiece
from antiphon.engine.types import Text as TextPiece
from antiphon.schema import events as wire
from antiphon.schema.content import Logprob, TopLogprob
from antiphon.schema.items import (
    OutputItem,
    Reasoning,
)
from antiphon.schema.response import (
    IncompleteDetails,
    InputTokensDetails,
    OutputTokensDetails,
    Response,
    ResponseError,
)
from antiphon.schema.response import Usage as WireUsage

_quote: Callable[[str], str] = encode_basestring


class Frame(NamedTuple):
    """One event: its type and its JSON, without line breaks."""

    type: str
    data: bytes


class EventBuilder:
    """Builds the events of one response.

    `new_id` makes an id for a prefix. `obfuscate` pads deltas (C11). `open_responses` takes
    that specification's names for reasoning events (O9). `seal` makes the encrypted content
    of a reasoning trace (R5), where it was asked for. `routes` say what the calls of the
    engine's tools become (T2). Call `start` once, `feed` for every
    delta, then exactly one of `finish`, `fail` and `cancel`; each closes what is open.
    """

    def __init__(
        self,
        response: Response,
        new_id: Callable[[str], str],
        *,
        obfuscate: bool = False,
        open_responses: bool = False,
        seal: Callable[[str], str] | None = None,
        routes: Mapping[str, Route] | None = None,
    ) -> None:
        self.response = response
        self._new_id = new_id
        self._obfuscate = obfuscate
        self._seal = seal
        self._routes = routes or {}
        self._reasoning_event = "response.reasoning" if open_responses else _REASONING_TEXT
        self._sequence = 0
        self._output: list[OutputItem] = []
        self._open: OpenItem | None = None
        self._usage: WireUsage | None = None
        self._finish: Literal["stop", "length"] | None = None

    @property
    def finished(self) -> bool:
        """Whether the engine said how the generation ended."""
        return self._finish is not None

    def start(self) -> list[Frame]:
        """The two events that go out before anything is generated."""
        return [
            self._event(wire.Created, response=self.response),
            self._event(wire.InProgress, response=self.response),
        ]

    def feed(self, delta: Delta) -> list[Frame]:
        """The events of one delta."""
        match delta:
            case TextPiece():
                if not delta.text and not delta.logprobs:
                    return []
                frames = [] if isinstance(self._open, OpenText) else self._begin(OpenText)
                frames.append(self._text_delta(delta))
                return frames
            case ReasoningPiece():
                if not delta.text:
                    return []
                frames = [] if isinstance(self._open, OpenReasoning) else self._begin(OpenReasoning)
                frames.append(self._delta(self._reasoning_event + ".delta", delta.text))
                return frames
            case CallStart():
                return [*self._close("completed"), *self._added(self._call(delta))]
            case CallArguments():
                if not isinstance(self._open, OpenCall):
                    raise ValueError("arguments without a call")
                text = self._open.take(delta.text)
                return [self._delta(self._open.event + ".delta", text)] if text else []
            case CallEnd():
                return self._close("completed" if delta.complete else "incomplete")
            case Usage():
                self._usage = _usage(delta)
                return []
            case Finish():
                self._finish = delta.reason
                return []
            case Prefill():
                return []

    def finish(self, now: int) -> list[Frame]:
        """Close everything as the engine ended it; the response is final afterwards."""
        cut = self._finish == "length"
        frames: list[Frame] = []
        if not self._output and self._open is None:
            frames += self._begin(OpenText)
        frames += self._close("incomplete" if cut else "completed")
        if cut:
            details = IncompleteDetails(reason="max_output_tokens")
            self._end(status="incomplete", incomplete_details=details)
        else:
            self._end(status="completed", completed_at=now)
        return frames

    def fail(self, error: ResponseError) -> list[Frame]:
        """Close everything after a failure; what was said so far is kept."""
        frames = self._close("incomplete")
        self._end(status="failed", error=error, completed_at=None, incomplete_details=None)
        return frames

    def cancel(self) -> list[Frame]:
        """Close everything after a cancel."""
        frames = self._close("incomplete")
        self._end(status="cancelled")
        return frames

    def terminal(self) -> Frame:
        """The last event. It must go out only after the response is stored (S4).

        A cancelled response ends a stream with `response.failed`, there being no event type
        for it.
        """
        kind: type[wire.Event] = wire.Failed
        if self.response.status in ("completed", "incomplete"):
            completed = self.response.status == "completed"
            kind = wire.Completed if completed else wire.Incomplete
        return self._event(kind, response=self.response)

    def _end(self, **update: object) -> None:
        update |= {"output": list(self._output), "usage": self._usage}
        self.response = self.response.model_copy(update=update)

    def _call(self, delta: CallStart) -> OpenCall:
        route = self._routes.get(delta.name) or Route("function", delta.name)
        kind = CALLS[route.kind]
        call_id = delta.call_id or self._new_id("call")
        return kind(self._new_id(kind.prefix), len(self._output), route, call_id)

    def _begin(self, kind: type[OpenText] | type[OpenReasoning]) -> list[Frame]:
        frames = self._close("completed")
        opened = kind(self._new_id(kind.prefix), len(self._output))
        frames += self._added(opened)
        frames.append(self._event(wire.PartAdded, **opened.place, part=opened.part(())))
        return frames

    def _added(self, opened: OpenItem) -> list[Frame]:
        self._open = opened
        item = opened.item("in_progress")
        return [self._event(wire.ItemAdded, output_index=opened.index, item=item)]

    def _close(self, status: Ending) -> list[Frame]:
        opened = self._open
        if opened is None:
            return []
        frames: list[Frame] = []
        if isinstance(opened, OpenCall) and (rest := opened.rest(status)):
            frames.append(self._delta(opened.event + ".delta", rest))
        self._open = None
        item = opened.item(status)
        text = "".join(opened.pieces)
        if self._seal is not None and isinstance(item, Reasoning):
            item = item.model_copy(update={"encrypted_content": self._seal(text)})
        match opened:
            case OpenText():
                part = opened.part(opened.pieces)
                frames.append(
                    self._event(
                        wire.TextDone, **opened.place, text=text, logprobs=part.logprobs or []
                    )
                )
                frames.append(self._event(wire.PartDone, **opened.place, part=part))
            case OpenReasoning():
                done = self._reasoning_event + ".done"
                frames.append(self._event(wire.ReasoningDone, **opened.place, type=done, text=text))
                frames.append(
                    self._event(wire.PartDone, **opened.place, part=opened.part(opened.pieces))
                )
            case OpenCustom():
                frames.append(self._event(wire.CustomInputDone, **opened.place, input=text))
            case OpenSearch():
                pass
            case OpenCall():
                frames.append(
                    self._event(
                        wire.ArgumentsDone, **opened.place, name=opened.name, arguments=text
                    )
                )
        frames.append(self._event(wire.ItemDone, output_index=opened.index, item=item))
        self._output.append(item)
        return frames

    def _text_delta(self, delta: TextPiece) -> Frame:
        assert isinstance(self._open, OpenText)
        if not delta.logprobs:
            return self._delta("response.output_text.delta", delta.text)
        logprobs = [_logprob(token) for token in delta.logprobs]
        self._open.logprobs += logprobs
        self._open.pieces.append(delta.text)
        return self._event(
            wire.TextDelta,
            **self._open.place,
            delta=delta.text,
            logprobs=logprobs,
            obfuscation=_padding() if self._obfuscate else None,
        )

    def _delta(self, type: str, text: str) -> Frame:
        """The hot path: written by hand, tested to equal what the models would write."""
        opened = self._open
        assert opened is not None
        opened.pieces.append(text)
        padding = f',"obfuscation":"{_padding()}"' if self._obfuscate else ""
        data = (
            f'{{"sequence_number":{self._sequence},{opened.head},"type":"{type}",'
            f'"delta":{_quote(text)}{opened.tail}{padding}}}'
        )
        self._sequence += 1
        return Frame(type, data.encode())

    def _event(self, kind: type[wire.Event], **fields: object) -> Frame:
        event = kind.model_validate({"sequence_number": self._sequence, **fields})
        self._sequence += 1
        return Frame(_type_of(event), event.encode())


_REASONING_TEXT = "response.reasoning_text"


def _type_of(event: wire.Event) -> str:
    name: str = event.type  # type: ignore[attr-defined]
    return name


def _logprob(token: TokenLogprob) -> Logprob:
    top = [TopLogprob(token=t.token, logprob=t.logprob, bytes=list(t.bytes)) for t in token.top]
    return Logprob(
        token=token.token, logprob=token.logprob, bytes=list(token.bytes), top_logprobs=top
    )


def _usage(usage: Usage) -> WireUsage:
    return WireUsage(
        input_tokens=usage.input_tokens,
        input_tokens_details=InputTokensDetails(
            cached_tokens=usage.cached_tokens,
            cache_write_tokens=usage.input_tokens - usage.cached_tokens,
        ),
        output_tokens=usage.output_tokens,
        output_tokens_details=OutputTokensDetails(reasoning_tokens=usage.reasoning_tokens),
        total_tokens=usage.input_tokens + usage.output_tokens,
    )


def _padding() -> str:
    return secrets.token_urlsafe(secrets.randbelow(24) + 1)
