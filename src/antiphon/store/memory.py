"""Documents in memory: least recently used first out, exact bytes, time to live.

Decides what goes when a limit is reached. A document that is deleted, evicted or expired
while others continue it is hidden: nobody can read it, its bytes count, and it goes with the
last of its children. Every operation is O(1) but for the chain walk.
"""

from __future__ import annotations

import time
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass

from antiphon.store.base import Document, Limits, Stats


@dataclass(slots=True)
class _Entry:
    document: Document
    written: float
    children: int = 0
    hidden: bool = False


class MemoryStore:
    """A `Store` that lives and dies with the process."""

    def __init__(
        self, limits: Limits | None = None, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._limits = limits or Limits()
        self._clock = clock
        self._entries: dict[str, _Entry] = {}
        self._recent: OrderedDict[str, None] = OrderedDict()
        self._written: OrderedDict[str, None] = OrderedDict()
        self._items: dict[tuple[str, str], str] = {}
        self._bytes = 0
        self._evictions = 0

    async def put(self, document: Document) -> bool:
        self._sweep()
        known = self._entries.get(document.id)
        if known is not None and (known.hidden or known.document.owner != document.owner):
            return False
        if document.size > self._limits.bytes:
            if known is not None:
                self._hide(document.id)
            return False
        if known is None:
            self._entries[document.id] = _Entry(document, self._clock())
            self._bytes += document.size
            if document.parent is not None and document.parent in self._entries:
                self._entries[document.parent].children += 1
        else:
            self._bytes += document.size - known.document.size
            self._forget_items(known.document)
            known.document, known.written = document, self._clock()
        for item_id in document.item_ids:
            self._items[document.owner, item_id] = document.id
        for order in (self._recent, self._written):
            order[document.id] = None
            order.move_to_end(document.id)
        while len(self._recent) > self._limits.entries or self._bytes > self._limits.bytes:
            if not self._recent:
                break
            self._evictions += 1
            self._hide(next(iter(self._recent)))
        return document.id in self._recent

    async def get(self, owner: str, id: str) -> Document | None:
        self._sweep()
        entry = self._visible(owner, id)
        if entry is None:
            return None
        self._recent.move_to_end(id)
        return entry.document

    async def chain(self, owner: str, id: str) -> list[Document] | None:
        document = await self.get(owner, id)
        if document is None:
            return None
        documents = [document]
        while (parent := documents[-1].parent) is not None:
            entry = self._entries.get(parent)
            if entry is None:
                break
            if not entry.hidden:
                self._recent.move_to_end(parent)
            documents.append(entry.document)
        documents.reverse()
        return documents

    async def find_item(self, owner: str, item_id: str) -> Document | None:
        self._sweep()
        id = self._items.get((owner, item_id))
        return None if id is None else await self.get(owner, id)

    async def delete(self, owner: str, id: str) -> bool:
        self._sweep()
        if self._visible(owner, id) is None:
            return False
        self._hide(id)
        return True

    async def pin(self, owner: str, id: str) -> bool:
        self._sweep()
        entry = self._visible(owner, id)
        if entry is None:
            return False
        entry.children += 1
        return True

    async def unpin(self, id: str) -> None:
        if id in self._entries:
            self._entries[id].children -= 1
            self._collect(id)

    def stats(self) -> Stats:
        hidden = len(self._entries) - len(self._recent)
        return Stats(len(self._recent), hidden, self._bytes, self._evictions)

    async def close(self) -> None:
        self._entries.clear()
        self._recent.clear()
        self._written.clear()
        self._items.clear()
        self._bytes = 0

    def _visible(self, owner: str, id: str) -> _Entry | None:
        entry = self._entries.get(id)
        if entry is None or entry.hidden or entry.document.owner != owner:
            return None
        return entry

    def _sweep(self) -> None:
        if not self._limits.ttl:
            return
        oldest = self._clock() - self._limits.ttl
        while self._written:
            id = next(iter(self._written))
            if self._entries[id].written > oldest:
                return
            self._hide(id)

    def _hide(self, id: str) -> None:
        entry = self._entries[id]
        entry.hidden = True
        del self._recent[id]
        del self._written[id]
        self._forget_items(entry.document)
        self._collect(id)

    def _collect(self, id: str | None) -> None:
        while id is not None and (entry := self._entries.get(id)) is not None:
            if not entry.hidden or entry.children:
                return
            del self._entries[id]
            self._bytes -= entry.document.size
            id = entry.document.parent
            if id is not None and id in self._entries:
                self._entries[id].children -= 1

    def _forget_items(self, document: Document) -> None:
        for item_id in document.item_ids:
            if self._items.get((document.owner, item_id)) == document.id:
                del self._items[document.owner, item_id]
