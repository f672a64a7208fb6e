"""Items while they are written: what has been said of each, and what its events carry.

Decides how the pieces of an engine's answer become the fields of an item. When an item opens
and closes is the event builder's business.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Literal

from antiphon.core.rawinput import RawInput
from antiphon.core.toolbox import Route
from antiphon.schema.content import Logprob, OutputText, ReasoningText
from antiphon.schema.items import (
    CustomToolCall,
    FunctionCall,
    Message,
    OutputItem,
    Reasoning,
    ToolSearchCall,
)

Ending = Literal["completed", "incomplete"]


class OpenItem:
    """An item that is being written. `head` and `tail` surround the delta in its events."""

    tail = ""

    def __init__(self, id: str, index: int) -> None:
        self.id = id
        self.index = index
        self.pieces: list[str] = []
        self.place: dict[str, object] = {"item_id": id, "output_index": index}
        self.head = f'"item_id":"{id}","output_index":{index}'

    def item(self, status: Literal["in_progress"] | Ending) -> OutputItem:
        raise NotImplementedError


class OpenText(OpenItem):
    prefix = "msg"
    tail = ',"logprobs":[]'

    def __init__(self, id: str, index: int) -> None:
        super().__init__(id, index)
        self.place["content_index"] = 0
        self.head += ',"content_index":0'
        self.logprobs: list[Logprob] = []

    def part(self, pieces: Sequence[str]) -> OutputText:
        return OutputText(text="".join(pieces), logprobs=list(self.logprobs) if pieces else [])

    def item(self, status: Literal["in_progress"] | Ending) -> Message:
        content = [] if status == "in_progress" else [self.part(self.pieces)]
        return Message(id=self.id, status=status, role="assistant", content=list(content))


class OpenReasoning(OpenItem):
    prefix = "rs"

    def __init__(self, id: str, index: int) -> None:
        super().__init__(id, index)
        self.place["content_index"] = 0
        self.head += ',"content_index":0'

    def part(self, pieces: Sequence[str]) -> ReasoningText:
        return ReasoningText(text="".join(pieces))

    def item(self, status: Literal["in_progress"] | Ending) -> Reasoning:
        content = [] if status == "in_progress" else [self.part(self.pieces)]
        return Reasoning(id=self.id, status=status, content=content)


class OpenCall(OpenItem):
    """A call of a function. `take` and `rest` say what of the engine's JSON is shown."""

    prefix = "fc"
    event = "response.function_call_arguments"

    def __init__(self, id: str, index: int, route: Route, call_id: str) -> None:
        super().__init__(id, index)
        self.name = route.name
        self.namespace = route.namespace
        self.call_id = call_id

    def take(self, text: str) -> str:
        return text

    def rest(self, status: Ending) -> str:
        """Arguments of a completed call are never empty (T2)."""
        return "{}" if status == "completed" and not self.pieces else ""

    def item(self, status: Literal["in_progress"] | Ending) -> OutputItem:
        return FunctionCall(
            id=self.id,
            status=status,
            call_id=self.call_id,
            name=self.name,
            namespace=self.namespace,
            arguments="".join(self.pieces),
        )


class OpenCustom(OpenCall):
    """A call of a custom tool: the bare input, taken out of its JSON."""

    prefix = "ctc"
    event = "response.custom_tool_call_input"

    def __init__(self, id: str, index: int, route: Route, call_id: str) -> None:
        super().__init__(id, index, route, call_id)
        self._input = RawInput()

    def take(self, text: str) -> str:
        return self._input.feed(text)

    def rest(self, status: Ending) -> str:
        return self._input.whole()

    def item(self, status: Literal["in_progress"] | Ending) -> OutputItem:
        return CustomToolCall(
            id=self.id,
            status=status,
            call_id=self.call_id,
            name=self.name,
            namespace=self.namespace,
            input="".join(self.pieces),
        )


class OpenSearch(OpenCall):
    """A search for tools, which has no delta events: its arguments come with the item."""

    prefix = "tsc"

    def __init__(self, id: str, index: int, route: Route, call_id: str) -> None:
        super().__init__(id, index, route, call_id)
        self._json = ""

    def take(self, text: str) -> str:
        self._json += text
        return ""

    def rest(self, status: Ending) -> str:
        return ""

    def item(self, status: Literal["in_progress"] | Ending) -> OutputItem:
        try:
            arguments = json.loads(self._json or "{}")
        except ValueError:
            arguments = {}
        if not isinstance(arguments, dict):
            arguments = {"value": arguments}
        return ToolSearchCall(id=self.id, status=status, call_id=self.call_id, arguments=arguments)


CALLS: Mapping[str, type[OpenCall]] = {
    "function": OpenCall,
    "custom": OpenCustom,
    "search": OpenSearch,
}
