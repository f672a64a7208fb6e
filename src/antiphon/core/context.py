"""What a request continues: its own items made whole, references resolved, the chain's history.

Decides which items a request means. Items get their ids here, once; a chain is walked to its
root by parent links (contract C7, I9, S5). Knows no turns: see `transcript`.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from dataclasses import dataclass

from pydantic import TypeAdapter

from antiphon.core.seal import BrokenSeal, Seal
from antiphon.core.transcript import Transcript
from antiphon.errors import InvalidRequest, NotFound, NotSupported
from antiphon.ids import Ids
from antiphon.schema.content import InputText, OutputText, Part, ReasoningText
from antiphon.schema.items import (
    AdditionalTools,
    Compaction,
    CompactionTrigger,
    CustomToolCall,
    CustomToolCallOutput,
    ForeignItem,
    FunctionCall,
    FunctionCallOutput,
    InputItem,
    ItemReference,
    Message,
    Reasoning,
    StoredItem,
    ToolSearchCall,
    ToolSearchOutput,
)
from antiphon.schema.response import Response
from antiphon.store.base import Document, Store

_ITEMS: TypeAdapter[list[InputItem]] = TypeAdapter(list[InputItem])

CACHED_TRANSCRIPTS = 64
_AT_ONCE = 256


@dataclass(frozen=True, slots=True)
class Context:
    """The items of this request, and the transcript of everything including them."""

    items: list[StoredItem]
    transcript: Transcript
    parent: str | None


def encode_items(items: list[StoredItem]) -> bytes:
    """The JSON array of items, as documents hold it."""
    return _ITEMS.dump_json(list(items))


def decode_items(data: bytes) -> list[StoredItem]:
    """The items of `encode_items`; a document holds no references."""
    items = _ITEMS.validate_json(data)
    return [item for item in items if not isinstance(item, ItemReference | CompactionTrigger)]


class ContextResolver:
    """Resolves what requests mean against a store, which is None where storage is off.

    The transcripts of the newest stored responses are kept, so that the next turn of a long
    chain costs its own items and not the whole history.
    """

    def __init__(
        self, store: Store | None, ids: Ids, seal: Seal, *, custom_tools: bool = False
    ) -> None:
        self._store = store
        self._ids = ids
        self._seal = seal
        self._custom_tools = custom_tools
        self._transcripts: OrderedDict[str, Transcript] = OrderedDict()

    async def resolve(
        self, owner: str, given: str | list[InputItem] | None, previous: str | None
    ) -> Context:
        """The context of a request.

        Raises:
            InvalidRequest: `previous_response_not_found`, or a fault of the history.
            NotFound: a reference to an item that the owner does not have.
        """
        history = await self._history(owner, previous) if previous is not None else Transcript()
        items = await self._items(owner, given)
        shown = [self._shown(owner, item, f"input[{n}]") for n, item in enumerate(items)]
        return Context(items, history.extended(shown, "input"), previous)

    def remember(self, document: Document, transcript: Transcript) -> None:
        """Keep the transcript that ends with this stored response."""
        self._transcripts[document.id] = transcript
        self._transcripts.move_to_end(document.id)
        while len(self._transcripts) > CACHED_TRANSCRIPTS:
            self._transcripts.popitem(last=False)

    async def _history(self, owner: str, previous: str) -> Transcript:
        if self._store is None:
            raise storage_off()
        if await self._store.get(owner, previous) is None:
            raise previous_not_found(previous)
        known = self._transcripts.get(previous)
        if known is not None:
            self._transcripts.move_to_end(previous)
            return known
        documents = await self._store.chain(owner, previous) or []
        transcript, first = Transcript(), 0
        for number, document in enumerate(documents):
            if (known := self._transcripts.get(document.id)) is not None:
                transcript, first = known, number + 1
        items: list[StoredItem] = []
        for number, document in enumerate(documents[first:]):
            items += (self._shown(owner, item) for item in own_items(document))
            if number % _AT_ONCE == _AT_ONCE - 1:
                await asyncio.sleep(0)  # other streams go on meanwhile
        transcript = transcript.extended(items)
        if documents:
            self.remember(documents[-1], transcript)
        return transcript

    async def _items(self, owner: str, given: str | list[InputItem] | None) -> list[StoredItem]:
        if given is None:
            return []
        if isinstance(given, str):
            part = InputText(text=given)
            return [
                Message(id=self._ids.new("msg"), status="completed", role="user", content=[part])
            ]
        items: list[StoredItem] = []
        for number, item in enumerate(given):
            items.append(await self._item(owner, item, f"input[{number}]"))
            if number % _AT_ONCE == _AT_ONCE - 1:
                await asyncio.sleep(0)  # other streams go on meanwhile
        return items

    async def _item(self, owner: str, item: InputItem, path: str) -> StoredItem:
        match item:
            case ItemReference():
                return await self._referenced(owner, item.id, path)
            case Message():
                part = OutputText if item.role == "assistant" else InputText
                content: list[Part] = (
                    [part(text=item.content)] if isinstance(item.content, str) else item.content
                )
                return item.model_copy(update={**self._identity(item, "msg"), "content": content})
            case FunctionCall():
                return item.model_copy(update=self._identity(item, "fc"))
            case FunctionCallOutput():
                return item.model_copy(update=self._identity(item, "fco"))
            case Reasoning():
                return item.model_copy(update=self._identity(item, "rs"))
            case CustomToolCall():
                self._serve_custom(item.type, path)
                return item.model_copy(update=self._identity(item, "ctc"))
            case CustomToolCallOutput():
                self._serve_custom(item.type, path)
                return item.model_copy(update=self._identity(item, "cto"))
            case ToolSearchCall() | ToolSearchOutput() | AdditionalTools():
                self._serve_custom(item.type, path)
                return item.model_copy(update=self._identity(item, "item"))
            case Compaction() | CompactionTrigger():
                raise NotSupported("Compaction items are not supported yet.", param=path)
            case ForeignItem():
                return item.model_copy(update=self._identity(item, "item"))

    def _serve_custom(self, type: str, path: str) -> None:
        if not self._custom_tools:
            raise NotSupported(
                f"Items of type '{type}' are not served under the strict policy.",
                param=f"{path}.type",
            )

    def _shown(self, owner: str, item: StoredItem, path: str | None = None) -> StoredItem:
        """The item as the model is to see it: a sealed trace is opened (R5)."""
        if not isinstance(item, Reasoning) or item.encrypted_content is None:
            return item
        try:
            trace = self._seal.open(item.encrypted_content, owner)
        except BrokenSeal:
            raise InvalidRequest(
                "The encrypted_content of this reasoning item was not made by this server for "
                "this key, or it was changed.",
                param=f"{path or 'previous_response_id'}.encrypted_content",
                code="invalid_encrypted_content",
            ) from None
        if item.content:
            return item
        return item.model_copy(update={"content": [ReasoningText(text=trace)] if trace else None})

    def _identity(self, item: StoredItem, prefix: str) -> dict[str, str]:
        status = getattr(item, "status", None)
        return {
            "id": item.id or self._ids.new(prefix),
            "status": "completed" if status in (None, "in_progress") else status,
        }

    async def _referenced(self, owner: str, id: str, path: str) -> StoredItem:
        document = None
        if self._store is not None:
            document = await self._store.find_item(owner, id)
        for item in own_items(document) if document is not None else ():
            if item.id == id:
                return item
        raise NotFound(
            f"Item with id '{id[:80]}' not found. Items of responses that were created with "
            "store: false are not kept.",
            param=f"{path}.id",
        )


def own_items(document: Document) -> list[StoredItem]:
    """The items that a stored response added to its chain: its input, then its output."""
    output: list[StoredItem] = list(Response.model_validate_json(document.body).output)
    return decode_items(document.inputs) + output


def previous_not_found(id: str) -> InvalidRequest:
    """The one answer for an unknown, expired, deleted or foreign id (C7)."""
    return InvalidRequest(
        f"Previous response with id '{id[:80]}' not found.",
        param="previous_response_id",
        code="previous_response_not_found",
    )


def storage_off() -> InvalidRequest:
    """The answer of everything that needs stored responses where there are none."""
    return InvalidRequest(
        "Response storage is disabled on this server; restart it with "
        "--responses-store-max-entries greater than 0."
    )
