"""Admission to an engine: a running limit, a bounded queue, fair between owners.

Decides who generates next. It must not know what a request is: it hands out tickets.
Owners take turns, so one owner with a hundred waiting requests delays another by one.
"""

from __future__ import annotations

import asyncio
from collections import deque

from antiphon.engine.errors import EngineBusy


class Ticket:
    """A place in the queue, then a slot. `release` gives either back, exactly once."""

    def __init__(self, slots: Slots, owner: str) -> None:
        self._slots = slots
        self.owner = owner
        self._settled = asyncio.Event()
        self._granted = False
        self._released = False

    async def acquire(self) -> bool:
        """Wait for the slot. False when `release` came first. Whoever waits must release."""
        await self._settled.wait()
        return self._granted and not self._released

    def release(self) -> None:
        """Leave the queue or free the slot. Synchronous and idempotent."""
        if not self._released:
            self._released = True
            self._settled.set()
            self._slots._release(self)

    def _grant(self) -> None:
        self._granted = True
        self._settled.set()


class Slots:
    """`running` tickets hold a slot at once, at most `waiting` more may queue."""

    def __init__(self, running: int, waiting: int) -> None:
        self.limit = running
        self.queue_limit = waiting
        self._running = 0
        self._waiting = 0
        self._queues: dict[str, deque[Ticket]] = {}

    @property
    def running(self) -> int:
        """How many tickets hold a slot."""
        return self._running

    @property
    def waiting(self) -> int:
        """How many tickets wait."""
        return self._waiting

    def reserve(self, owner: str) -> Ticket:
        """Take a place without waiting.

        Raises:
            EngineBusy: the queue is full.
        """
        ticket = Ticket(self, owner)
        if self._running < self.limit and not self._waiting:
            self._running += 1
            ticket._grant()
            return ticket
        if self._waiting >= self.queue_limit:
            raise EngineBusy(f"{self._waiting} requests are waiting already")
        self._queues.setdefault(owner, deque()).append(ticket)
        self._waiting += 1
        return ticket

    def _release(self, ticket: Ticket) -> None:
        if ticket._granted:
            self._running -= 1
        else:
            queue = self._queues[ticket.owner]
            queue.remove(ticket)
            self._waiting -= 1
            if not queue:
                del self._queues[ticket.owner]
        self._admit()

    def _admit(self) -> None:
        while self._running < self.limit and self._queues:
            owner = next(iter(self._queues))
            queue = self._queues.pop(owner)
            ticket = queue.popleft()
            if queue:
                self._queues[owner] = queue  # to the end: the others come first
            self._waiting -= 1
            self._running += 1
            ticket._grant()
