"""Stream events: one class per event type that the server sends.

Decides the shape of events. Their order and numbers are the business of `core.events`.
"""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from antiphon.schema.base import Wire, absent
from antiphon.schema.content import Logprob, OutputText, ReasoningText
from antiphon.schema.items import OutputItem
from antiphon.schema.response import Response


class Event(Wire):
    """What all events share. `sequence_number` is dense from 0 over a stream (O7)."""

    sequence_number: int


class Created(Event):
    type: Literal["response.created"] = "response.created"
    response: Response


class InProgress(Event):
    type: Literal["response.in_progress"] = "response.in_progress"
    response: Response


class Completed(Event):
    type: Literal["response.completed"] = "response.completed"
    response: Response


class Incomplete(Event):
    type: Literal["response.incomplete"] = "response.incomplete"
    response: Response


class Failed(Event):
    type: Literal["response.failed"] = "response.failed"
    response: Response


class ItemAdded(Event):
    type: Literal["response.output_item.added"] = "response.output_item.added"
    output_index: int
    item: OutputItem


class ItemDone(Event):
    type: Literal["response.output_item.done"] = "response.output_item.done"
    output_index: int
    item: OutputItem


class ItemEvent(Event):
    """An event inside an item."""

    item_id: str
    output_index: int


class PartEvent(ItemEvent):
    """An event inside a content part."""

    content_index: int


class PartAdded(PartEvent):
    type: Literal["response.content_part.added"] = "response.content_part.added"
    part: OutputText | ReasoningText


class PartDone(PartEvent):
    type: Literal["response.content_part.done"] = "response.content_part.done"
    part: OutputText | ReasoningText


class TextDelta(PartEvent):
    type: Literal["response.output_text.delta"] = "response.output_text.delta"
    delta: str
    logprobs: list[Logprob] = Field(default_factory=list)
    obfuscation: str | None = absent()


class TextDone(PartEvent):
    type: Literal["response.output_text.done"] = "response.output_text.done"
    text: str
    logprobs: list[Logprob] = Field(default_factory=list)


class ReasoningDelta(PartEvent):
    """Named as OpenAI names it, or as Open Responses does on request (O9)."""

    type: Literal["response.reasoning_text.delta", "response.reasoning.delta"] = (
        "response.reasoning_text.delta"
    )
    delta: str
    obfuscation: str | None = absent()


class ReasoningDone(PartEvent):
    type: Literal["response.reasoning_text.done", "response.reasoning.done"] = (
        "response.reasoning_text.done"
    )
    text: str


class ArgumentsDelta(ItemEvent):
    type: Literal["response.function_call_arguments.delta"] = (
        "response.function_call_arguments.delta"
    )
    delta: str
    obfuscation: str | None = absent()


class ArgumentsDone(ItemEvent):
    type: Literal["response.function_call_arguments.done"] = "response.function_call_arguments.done"
    name: str
    arguments: str


class CustomInputDelta(ItemEvent):
    type: Literal["response.custom_tool_call_input.delta"] = "response.custom_tool_call_input.delta"
    delta: str
    obfuscation: str | None = absent()


class CustomInputDone(ItemEvent):
    type: Literal["response.custom_tool_call_input.done"] = "response.custom_tool_call_input.done"
    input: str


StreamEvent = Annotated[
    Created
    | InProgress
    | Completed
    | Incomplete
    | Failed
    | ItemAdded
    | ItemDone
    | PartAdded
    | PartDone
    | TextDelta
    | TextDone
    | ReasoningDelta
    | ReasoningDone
    | ArgumentsDelta
    | ArgumentsDone
    | CustomInputDelta
    | CustomInputDone,
    Field(discriminator="type"),
]
