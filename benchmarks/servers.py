"""Servers under measurement, each a process of its own."""

from __future__ import annotations

import asyncio
import contextlib
import re
import statistics
import sys
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from dataclasses import dataclass

import aiohttp
import psutil

Row = dict[str, object]


@dataclass
class Process:
    """A running server: its address and its process."""

    base: str
    process: psutil.Process

    def cpu(self) -> float:
        """CPU seconds of the process so far, children not counted."""
        if sys.platform == "linux":
            # The process's own clock (see clock_getcpuclockid), which counts nanoseconds.
            return time.clock_gettime(~self.process.pid << 3 | 2)
        times = self.process.cpu_times()
        return times.user + times.system

    def rss(self) -> dict[str, int]:
        """MiB held by the server and by its children."""
        children = sum(child.memory_info().rss for child in self.process.children(recursive=True))
        own = self.process.memory_info().rss
        return {"server_mib": own >> 20, "worker_mib": children >> 20}


@contextlib.asynccontextmanager
async def process(*arguments: str) -> AsyncIterator[Process]:
    """Run Python with these arguments, up to the line that says `is ready` and where."""
    child = await asyncio.create_subprocess_exec(
        sys.executable, *arguments, stdout=asyncio.subprocess.PIPE
    )
    assert child.stdout is not None
    try:
        while b"is ready" not in (line := await child.stdout.readline()):
            if not line:
                raise RuntimeError(f"{arguments} did not start")
        found = re.search(r"http://[\d.:]+", line.decode())
        assert found is not None
        yield Process(found[0], psutil.Process(child.pid))
    finally:
        if child.returncode is None:
            child.terminate()
        await child.wait()


def antiphon(*flags: str) -> contextlib.AbstractAsyncContextManager[Process]:
    """`antiphon serve` with these flags, on a free port."""
    return process("-m", "antiphon", "serve", "--port", "0", "--log-level", "error", *flags)


def client() -> aiohttp.ClientSession:
    """A client without limits."""
    return aiohttp.ClientSession(
        connector=aiohttp.TCPConnector(limit=0), timeout=aiohttp.ClientTimeout(total=None)
    )


async def medians(
    sides: Mapping[str, Callable[[int], Awaitable[float]]], turns: int
) -> dict[str, float]:
    """The median of each side. Sides take turns, and in every second turn the last is first.

    Each is called with the number of the turn.
    """
    found: dict[str, list[float]] = {name: [] for name in sides}
    for turn in range(turns):
        for name in list(sides)[:: -1 if turn % 2 else 1]:
            found[name].append(await sides[name](turn))
    return {name: statistics.median(values) for name, values in found.items()}
