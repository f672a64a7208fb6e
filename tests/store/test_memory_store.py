"""The memory store against a naive model of what was promised (S2, S3, S5, S6, S8)."""

from __future__ import annotations

import asyncio
from typing import Any

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from antiphon.store.base import Document, Limits
from antiphon.store.memory import MemoryStore

OWNERS = ("ann", "bob")
IDS = tuple(f"resp_{n}" for n in range(12))
LIMITS = Limits(entries=5, bytes=600, ttl=10)


def run(work: Any) -> Any:
    """The memory store never waits, so a coroutine of it ends at once."""
    return asyncio.run(work)


class StoreMachine(RuleBasedStateMachine):
    """Random operations with a clock that the test moves."""

    def __init__(self) -> None:
        super().__init__()
        self.now = 0.0
        self.store = MemoryStore(LIMITS, lambda: self.now)
        self.history: dict[str, tuple[str, ...]] = {}
        self.owner: dict[str, str] = {}
        self.gone: set[str] = set()
        self.numbers = iter(range(10_000))

    def readable(self, owner: str, id: str) -> bool:
        return run(self.store.get(owner, id)) is not None

    @rule(owner=st.sampled_from(OWNERS), size=st.integers(1, 250), parent=st.sampled_from(IDS))
    def put(self, owner: str, size: int, parent: str) -> None:
        id = f"resp_{next(self.numbers)}"
        known = parent if self.readable(owner, parent) else None
        kept = run(self.store.put(Document(id, owner, b"x" * size, b"[]", (f"msg_{id}",), known)))
        self.history[id] = (*self.history.get(known or "", ()), id)
        self.owner[id] = owner
        assert kept == self.readable(owner, id)

    @rule(size=st.integers(601, 2000), owner=st.sampled_from(OWNERS))
    def put_too_large(self, size: int, owner: str) -> None:
        """S3: an object larger than the whole budget evicts nobody."""
        self.readable(owner, "nothing")  # what has expired goes first
        before = self.store.stats()
        assert not run(self.store.put(Document("resp_big", owner, b"x" * size, b"[]")))
        assert self.store.stats() == before

    @rule(owner=st.sampled_from(OWNERS), id=st.sampled_from(IDS))
    def delete(self, owner: str, id: str) -> None:
        was = self.readable(owner, id)
        assert run(self.store.delete(owner, id)) == was
        assert not self.readable(owner, id)
        if was:
            self.gone.add(id)

    @rule(seconds=st.floats(0.1, 6))
    def wait(self, seconds: float) -> None:
        self.now += seconds

    @rule(owner=st.sampled_from(OWNERS), id=st.sampled_from(IDS))
    def read_chain(self, owner: str, id: str) -> None:
        """S5, S8: whoever can be read has its whole history, whatever became of it."""
        chain = run(self.store.chain(owner, id))
        if not self.readable(owner, id):
            assert chain is None
            return
        assert self.owner[id] == owner
        assert tuple(document.id for document in chain) == self.history[id]

    @rule(owner=st.sampled_from(OWNERS), id=st.sampled_from(IDS))
    def find_item(self, owner: str, id: str) -> None:
        found = run(self.store.find_item(owner, f"msg_{id}"))
        assert (found is not None) == self.readable(owner, id)

    @rule(owner=st.sampled_from(OWNERS), id=st.sampled_from(IDS), seconds=st.floats(0, 30))
    def pinned(self, owner: str, id: str, seconds: float) -> None:
        """S5: what a running continuation needs stays, also when it is deleted meanwhile."""
        if not run(self.store.pin(owner, id)):
            assert not self.readable(owner, id)
            return
        run(self.store.delete(owner, id))
        self.gone.add(id)
        self.now += seconds
        child = f"resp_{next(self.numbers)}"
        kept = run(self.store.put(Document(child, owner, b"y", b"[]", (f"msg_{child}",), id)))
        self.history[child] = (*self.history[id], child)
        self.owner[child] = owner
        if kept:
            chain = run(self.store.chain(owner, child))
            assert tuple(document.id for document in chain) == self.history[child]
        run(self.store.unpin(id))

    @invariant()
    def limits_hold(self) -> None:
        """S2: entries and real bytes within the limits; a deleted id never comes back."""
        stats = self.store.stats()
        assert stats.entries <= LIMITS.entries
        assert stats.bytes <= LIMITS.bytes
        assert stats.bytes == sum(e.document.size for e in self.store._entries.values())
        assert all(not self.readable(self.owner[id], id) for id in self.gone)


StoreMachine.TestCase.settings = settings(max_examples=120, stateful_step_count=40, deadline=None)
TestStore = StoreMachine.TestCase


def test_reading_keeps_a_document_longer_than_its_neighbours() -> None:
    """S2: use refreshes recency."""
    store = MemoryStore(Limits(entries=2))
    for id in ("a", "b"):
        run(store.put(Document(id, "ann", b"1", b"[]")))
    run(store.get("ann", "a"))
    run(store.put(Document("c", "ann", b"1", b"[]")))

    assert run(store.get("ann", "a")) is not None
    assert run(store.get("ann", "b")) is None


def test_age_counts_from_the_write_and_not_from_the_last_use() -> None:
    """S2: TTL."""
    now = [0.0]
    store = MemoryStore(Limits(ttl=10), lambda: now[0])
    run(store.put(Document("a", "ann", b"1", b"[]")))
    now[0] = 9
    assert run(store.get("ann", "a")) is not None
    now[0] = 10
    assert run(store.get("ann", "a")) is None


def test_the_last_child_takes_its_hidden_parents_with_it() -> None:
    """S5: the bytes of hidden parents come back when nobody needs them."""
    store = MemoryStore()
    parent = None
    for id in ("a", "b", "c"):
        run(store.put(Document(id, "ann", b"1", b"[]", (), parent)))
        parent = id
    for id in ("a", "b"):
        run(store.delete("ann", id))
    assert store.stats().hidden == 2

    run(store.delete("ann", "c"))

    assert store.stats() == type(store.stats())(0, 0, 0, 0)
