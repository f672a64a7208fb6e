"""The runs that are going on, by id.

Decides who may see a run and what happens to all of them at shutdown. The only place that
owns run tasks.
"""

from __future__ import annotations

import asyncio

from antiphon.core.run import Run


class Runs:
    """Registry of the active runs. A finished run is forgotten: the store has it."""

    def __init__(self) -> None:
        self._runs: dict[str, Run] = {}
        self._tasks: set[asyncio.Task[None]] = set()

    def __len__(self) -> int:
        return len(self._runs)

    def start(self, run: Run) -> None:
        """Start a run and keep it until it is done."""
        self._runs[run.id] = run
        task = run.start()
        self._tasks.add(task)
        task.add_done_callback(lambda _: self._forget(run, task))

    def get(self, owner: str, id: str) -> Run | None:
        """The active run of this id, for its owner only."""
        run = self._runs.get(id)
        return run if run is not None and run.owner == owner else None

    async def drain(self, seconds: float) -> None:
        """Let runs end for so long, then cancel the rest and wait for them to be written."""
        if self._tasks:
            await asyncio.wait(set(self._tasks), timeout=seconds)
        for run in list(self._runs.values()):
            run.cancel()
        if self._tasks:
            await asyncio.wait(set(self._tasks))

    def _forget(self, run: Run, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        self._runs.pop(run.id, None)
