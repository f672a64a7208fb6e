"""Items become turns: which call an output answers, what belongs to one assistant turn.

Decides contract I5-I8 and I11. Works on whole histories and on what a chain adds to one: a
`Transcript` is a value that `extended` copies, so the history of a stored response can be
kept and shared. Knows neither the store nor how a template writes turns.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from typing import Any

from antiphon.core.toolbox import SEARCH, Toolbox, flat_name
from antiphon.engine.types import ToolCall, Turn
from antiphon.errors import InvalidRequest, NotSupported
from antiphon.schema.content import InputFile, InputImage, Part
from antiphon.schema.items import (
    AdditionalTools,
    Compaction,
    CustomToolCall,
    CustomToolCallOutput,
    ForeignItem,
    FunctionCall,
    FunctionCallOutput,
    Message,
    Reasoning,
    StoredItem,
    ToolSearchCall,
    ToolSearchOutput,
)
from antiphon.schema.tools import Tool


@dataclass(frozen=True, slots=True)
class Entry:
    """One turn and, if it is an assistant's with calls, the outputs of those calls."""

    turn: Turn
    outputs: tuple[str | None, ...] = ()

    @property
    def turns(self) -> tuple[Turn, ...]:
        """The turn, then the outputs in call order. A call without output has an empty one."""
        if not self.turn.calls:
            return (self.turn,)
        answers = (
            Turn("tool", output or "", call_id=call.call_id, name=call.name)
            for call, output in zip(self.turn.calls, self.outputs, strict=True)
        )
        return (self.turn, *answers)


@dataclass(slots=True)
class Transcript:
    """A history as entries. `calls` finds the newest call of an id: (entry, position).

    `tools` are those that joined on the way.
    """

    entries: list[Entry] = field(default_factory=list)
    calls: dict[str, tuple[int, int]] = field(default_factory=dict)
    reasoning: str = ""
    tools: list[Tool] = field(default_factory=list)

    def extended(self, items: Iterable[StoredItem], where: str | None = None) -> Transcript:
        """A copy with further items. `where` is the field they came from, for errors.

        Raises:
            InvalidRequest: an output without its call, two open calls of one id, two
                different outputs for one call.
            NotSupported: a part or an item that cannot be rendered.
        """
        copy = Transcript(list(self.entries), dict(self.calls), self.reasoning, list(self.tools))
        for index, item in enumerate(items):
            copy._add(item, f"{where}[{index}]" if where else None)
        return copy

    def turns(self, skip: int = 0) -> tuple[Turn, ...]:
        """All turns, without the first `skip` entries."""
        entries = self.entries[skip:]
        if not self.calls:
            return tuple([entry.turn for entry in entries])
        return tuple([turn for entry in entries for turn in entry.turns])

    @property
    def last_user(self) -> int:
        """The position of the last user turn; 0 where there is none."""
        users = (n for n, entry in enumerate(self.entries) if entry.turn.role == "user")
        return max(users, default=0)

    @property
    def empty(self) -> bool:
        """Whether there is nothing that could be answered."""
        return not any(entry.turn.content.strip() or entry.turn.calls for entry in self.entries)

    def _add(self, item: StoredItem, path: str | None) -> None:
        match item:
            case Message():
                self._message(item, path)
            case FunctionCall():
                name = flat_name(item.name, item.namespace)
                self._call(ToolCall(item.call_id, name, item.arguments), path)
            case CustomToolCall():
                name = flat_name(item.name, item.namespace)
                arguments = json.dumps({"input": item.input}, ensure_ascii=False)
                self._call(ToolCall(item.call_id, name, arguments), path)
            case ToolSearchCall():
                arguments = json.dumps(item.arguments, ensure_ascii=False)
                self._call(ToolCall(item.call_id or SEARCH, SEARCH, arguments), path)
            case FunctionCallOutput() | CustomToolCallOutput():
                text = _text(item.output, "\n", _at(path, "output"))
                self._output(item.call_id, text, path)
            case ToolSearchOutput():
                self.tools += item.tools
                found = ", ".join(Toolbox.of((), item.tools).routes) or "none"
                self._output(item.call_id or SEARCH, f"Tools found: {found}", path)
            case AdditionalTools():
                self.tools += item.tools
            case Reasoning():
                texts = item.content or item.summary
                self.reasoning = "\n".join(
                    filter(None, (self.reasoning, *(part.text for part in texts)))
                )
            case Compaction():
                raise NotSupported("Compaction items are not supported yet.", param=path)
            case ForeignItem():
                self._foreign(item)

    def _message(self, item: Message, path: str | None) -> None:
        glue = "" if item.role == "assistant" else "\n"
        content = _text(item.content, glue, _at(path, "content"), "image_url")
        reasoning = self.reasoning if item.role == "assistant" else ""
        self.reasoning = ""
        self.entries.append(Entry(Turn(item.role, content, reasoning)))

    def _call(self, call: ToolCall, path: str | None) -> None:
        place = self.calls.get(call.call_id)
        if place and self.entries[place[0]].outputs[place[1]] is None:
            raise InvalidRequest(
                f"The call_id '{_short(call.call_id)}' is duplicated: an earlier call of this id "
                "has no output yet.",
                param=_at(path, "call_id"),
            )
        last = self.entries[-1] if self.entries else None
        if (
            last is not None
            and last.turn.role == "assistant"
            and not self.reasoning
            and all(output is None for output in last.outputs)
        ):
            turn = replace(last.turn, calls=(*last.turn.calls, call))
            self.entries[-1] = Entry(turn, (*last.outputs, None))
        else:
            turn = Turn("assistant", reasoning=self.reasoning, calls=(call,))
            self.entries.append(Entry(turn, (None,)))
        self.reasoning = ""
        self.calls[call.call_id] = len(self.entries) - 1, len(turn.calls) - 1

    def _output(self, call_id: str, text: str, path: str | None) -> None:
        place = self.calls.get(call_id)
        if place is None:
            raise InvalidRequest(
                f"No tool call found for function call output with call_id {_short(call_id)}.",
                param=_at(path, "call_id"),
            )
        entry = self.entries[place[0]]
        known = entry.outputs[place[1]]
        if known is not None and known != text:
            raise InvalidRequest(
                f"The call '{_short(call_id)}' is answered twice, with different outputs.",
                param=_at(path, "call_id"),
            )
        outputs = (*entry.outputs[: place[1]], text, *entry.outputs[place[1] + 1 :])
        self.entries[place[0]] = replace(entry, outputs=outputs)

    def _foreign(self, item: ForeignItem) -> None:
        """A tool that ran elsewhere is told as neutral text, in the place where it stood."""
        keys: dict[str, Any] = dict(item.model_extra or {})
        status = f" {item.status}" if item.status else ""
        detail = json.dumps(keys, ensure_ascii=False) if keys else ""
        text = f"[{item.type}{status}] {detail}".rstrip()
        theirs = item.type.endswith(("_output", "_response"))
        self.entries.append(Entry(Turn("user" if theirs else "assistant", text)))


def _text(content: str | list[Part], glue: str, path: str, field: str = "") -> str:
    if isinstance(content, str):
        return content
    texts: list[str] = []
    for index, part in enumerate(content):
        at = f"{path}[{index}]"
        match part:
            case InputImage():
                raise NotSupported(
                    "This model cannot take images.",
                    param=f"{at}.{field}" if field else at,
                    code="unsupported_content",
                )
            case InputFile():
                raise NotSupported(
                    "Files are not supported yet.", param=at, code="unsupported_content"
                )
            case _:
                texts.append(part.refusal if part.type == "refusal" else part.text)
    return glue.join(texts)


def _at(path: str | None, field: str) -> str:
    return f"{path}.{field}" if path else f"previous_response_id ({field})"


def _short(text: str) -> str:
    return text if len(text) <= 80 else text[:80] + "…"
