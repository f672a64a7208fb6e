"""A running generation: deltas over a bounded buffer, with a cancel that never blocks.

Decides how an engine's producer and the reader of its deltas meet. It must not know what the
deltas mean. The producer runs in a task of its own, so that cancelling is a synchronous call
and `stopped()` can be awaited from anywhere.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable

from antiphon.engine.types import Delta

Emit = Callable[[Delta], Awaitable[None]]
Produce = Callable[[Emit], Awaitable[None]]

BUFFER = 256


class Generation:
    """An async iterator of `Delta`, or a source that is piped into a function.

    `produce(emit)` is the engine's coroutine. It ends when the engine has let go of the
    request, also when it is cancelled: whatever it must give back (a connection, a slot)
    belongs into its `finally`. An exception of `produce` is raised to the reader after the
    deltas that came before it.

    Must be created inside a running event loop. There is one reader.
    """

    def __init__(self, produce: Produce, buffer: int = BUFFER) -> None:
        self._buffer: deque[Delta] = deque()
        self._limit = buffer
        self._ready = asyncio.Event()
        self._space = asyncio.Event()
        self._sink: Callable[[Delta], None] | None = None
        self._piped = 0
        self._cancelled = False
        self._error: Exception | None = None
        self._task = asyncio.get_running_loop().create_task(self._run(produce))

    @property
    def cancelled(self) -> bool:
        """Whether `cancel()` was called."""
        return self._cancelled

    @property
    def ended(self) -> bool:
        """Whether the engine has let go."""
        return self._task.done()

    def cancel(self) -> None:
        """Ask the engine to stop. Synchronous and idempotent; deltas not yet read are dropped."""
        self._cancelled = True
        self._sink = None
        self._buffer.clear()
        self._task.cancel()
        self._ready.set()

    async def stopped(self) -> None:
        """Return once the engine has really let go, however the generation ended."""
        await asyncio.wait({self._task})

    async def pipe(self, sink: Callable[[Delta], None]) -> None:
        """Call `sink` with every delta, in the producer's own task, until the end.

        The cheapest way to read: nobody is woken for a delta. Raises what `produce` or `sink`
        raised. Ends without an error after `cancel()`.
        """
        while self._buffer:
            sink(self._buffer.popleft())
        if not self._cancelled:
            self._sink = sink
            self._space.set()
        await asyncio.wait({self._task})
        while self._buffer:
            sink(self._buffer.popleft())
        if self._error is not None and not self._cancelled:
            raise self._error

    async def batches(self) -> AsyncIterator[list[Delta]]:
        """Yield the deltas that are ready together, so that a reader wakes once for many.

        Raises what `produce` raised. Ends without an error after `cancel()`.
        """
        while True:
            await self._ready.wait()
            if self._cancelled:
                return
            batch = list(self._buffer)
            self._buffer.clear()
            if not self._task.done():
                self._ready.clear()
            self._space.set()
            if batch:
                yield batch
            elif self._task.done():
                if self._error is not None:
                    raise self._error
                return

    async def __aiter__(self) -> AsyncIterator[Delta]:
        async for batch in self.batches():
            for delta in batch:
                yield delta

    async def _run(self, produce: Produce) -> None:
        try:
            await produce(self._emit)
        except Exception as error:
            self._error = error
        finally:
            # The reader finds the task done on its next look, so wake it after this frame.
            asyncio.get_running_loop().call_soon(self._ready.set)

    async def _emit(self, delta: Delta) -> None:
        if self._sink is not None:
            self._sink(delta)
            self._piped += 1
            if self._piped % self._limit == 0:
                await asyncio.sleep(0)  # a producer that never waits must not stop the loop
            return
        while len(self._buffer) >= self._limit:
            self._space.clear()
            await self._space.wait()
        self._buffer.append(delta)
        self._ready.set()
