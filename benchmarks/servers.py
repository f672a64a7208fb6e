"""Servers under measurement, each a process of its own."""

from __future__ import annotations

import asyncio
import contextlib
import socket
import sys
from collections.abc import AsyncIterator, Sequence
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
        times = self.process.cpu_times()
        return times.user + times.system

    def rss(self) -> dict[str, int]:
        """MiB held by the server and by its children."""
        children = sum(child.memory_info().rss for child in self.process.children(recursive=True))
        own = self.process.memory_info().rss
        return {"server_mib": own >> 20, "worker_mib": children >> 20}


def free_port() -> int:
    """A port that was free a moment ago."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


@contextlib.asynccontextmanager
async def process(arguments: Sequence[str], port: int, ready: str) -> AsyncIterator[Process]:
    """Run Python with these arguments; it is up once it prints a line with `ready` in it."""
    child = await asyncio.create_subprocess_exec(
        sys.executable, *arguments, stdout=asyncio.subprocess.PIPE
    )
    assert child.stdout is not None
    try:
        while ready.encode() not in (line := await child.stdout.readline()):
            if not line:
                raise RuntimeError(f"{arguments} did not start")
        yield Process(f"http://127.0.0.1:{port}", psutil.Process(child.pid))
    finally:
        if child.returncode is None:
            child.terminate()
        await child.wait()


def antiphon(
    *flags: str, port: int | None = None
) -> contextlib.AbstractAsyncContextManager[Process]:
    """`antiphon serve` with these flags."""
    port = port or free_port()
    arguments = ["-m", "antiphon", "serve", "--port", str(port), "--log-level", "error", *flags]
    return process(arguments, port, "is ready")


def client() -> aiohttp.ClientSession:
    """A client without limits."""
    return aiohttp.ClientSession(
        connector=aiohttp.TCPConnector(limit=0), timeout=aiohttp.ClientTimeout(total=None)
    )
