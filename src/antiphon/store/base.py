"""The contract of a document store.

Decides what a store promises: documents are bytes with an owner and a parent, a foreign id
looks like an unknown one, and a parent that living children need is kept (contract S2-S6,
S8). It knows no schema: what the bytes mean is `core`'s business.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol


@dataclass(frozen=True, slots=True)
class Document:
    """A stored response.

    `body` is the JSON of the resource, `inputs` the JSON array of the items of its own
    request. `item_ids` are the ids of all its items, which can be looked up. `parent` is the
    id of the document that it continues.
    """

    id: str
    owner: str
    body: bytes
    inputs: bytes
    item_ids: tuple[str, ...] = ()
    parent: str | None = None

    @property
    def size(self) -> int:
        """Bytes held for this document."""
        ids = sum(map(len, self.item_ids))
        return len(self.id) + len(self.owner) + len(self.body) + len(self.inputs) + ids


@dataclass(frozen=True, slots=True)
class Limits:
    """`entries` and `bytes` bound the store; `ttl` is in seconds since the write, 0 for ever."""

    entries: int = 1024
    bytes: int = 268_435_456
    ttl: int = 3600


@dataclass(frozen=True, slots=True)
class Stats:
    """What a store holds. `bytes` includes hidden parents, `entries` does not."""

    entries: int
    hidden: int
    bytes: int
    evictions: int


class Store(Protocol):
    """Documents by id, for their owners only."""

    async def put(self, document: Document) -> bool:
        """Write a document. False where it cannot be kept within the limits.

        A document larger than the whole budget evicts nobody (S3).
        """
        ...

    async def get(self, owner: str, id: str) -> Document | None:
        """Read a document and refresh its recency."""
        ...

    async def chain(self, owner: str, id: str) -> list[Document] | None:
        """The document of this id and all that it continues, oldest first; None if unknown.

        Parents that were deleted or evicted are there as long as a child needs them (S5).
        """
        ...

    async def find_item(self, owner: str, item_id: str) -> Document | None:
        """The newest document that holds an item of this id."""
        ...

    async def delete(self, owner: str, id: str) -> bool:
        """Forget a document; False if unknown."""
        ...

    async def pin(self, owner: str, id: str) -> bool:
        """Keep a document's history while a run that continues it is going on.

        False if unknown; only a True is undone with `unpin`.
        """
        ...

    async def unpin(self, id: str) -> None:
        """Undo one `pin`."""
        ...

    def stats(self) -> Stats:
        """What is held now."""
        ...

    async def close(self) -> None:
        """Give back what the store holds open."""
        ...
