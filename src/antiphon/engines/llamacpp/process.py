"""A child process with its standard error read: its last lines, its address, its end.

Decides how a worker is started and ended, with everything that it started itself. Knows
neither HTTP nor models.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import re
import signal
from collections import deque
from collections.abc import Callable, Mapping, Sequence

log = logging.getLogger("antiphon.engine")

_ADDRESS = re.compile(r"http://127\.0\.0\.1:\d+")
_LINES, _LINE = 30, 500
_GRACE_SECONDS = 3.0


class Process:
    """A running child. Made by `start`; `close` must be called in the end."""

    def __init__(
        self,
        child: asyncio.subprocess.Process,
        level: int,
        watch: Callable[[str], None],
        farewell: Callable[[], None],
    ) -> None:
        self._child = child
        self._level = level
        self._watch = watch
        self._farewell = farewell
        self._address: asyncio.Future[str | None] = asyncio.get_running_loop().create_future()
        self.lines: deque[str] = deque(maxlen=_LINES)
        self.ended = asyncio.Event()
        self._task = asyncio.create_task(self._follow())

    @classmethod
    async def start(
        cls,
        command: Sequence[str],
        environment: Mapping[str, str],
        *,
        level: int,
        watch: Callable[[str], None],
        farewell: Callable[[], None],
    ) -> Process:
        """Start `command`. What it writes is logged at `level`.

        `watch` gets each line; `farewell` is called when the process has ended, before
        anybody who waits for it learns of it.
        """
        child = await asyncio.create_subprocess_exec(
            *command,
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.DEVNULL,
            stderr=asyncio.subprocess.PIPE,
            env=dict(environment),
            # Ctrl-C in a terminal is for us; we end the child. A group of its own can be
            # ended with all that is in it.
            start_new_session=True,
        )
        return cls(child, level, watch, farewell)

    @property
    def pid(self) -> int:
        """The process id."""
        return self._child.pid

    @property
    def code(self) -> int:
        """The exit code once it ended; negative for a signal."""
        return self._child.returncode or 0

    async def address(self) -> str | None:
        """The address that it says it listens on; None when it ended without one."""
        return await asyncio.shield(self._address)

    def kill(self) -> None:
        """End it at once, with everything in its group. `ended` is set when it has."""
        with contextlib.suppress(ProcessLookupError, PermissionError):
            if hasattr(os, "killpg"):
                os.killpg(self._child.pid, signal.SIGKILL)
            else:
                self._child.kill()

    async def close(self) -> None:
        """Ask it to end by closing its standard input, and kill it where it does not."""
        if self._child.stdin is not None:
            self._child.stdin.close()
        try:
            async with asyncio.timeout(_GRACE_SECONDS):
                await self.ended.wait()
        except TimeoutError:
            self.kill()
            await self.ended.wait()
        await asyncio.wait({self._task})

    async def _follow(self) -> None:
        reading = asyncio.create_task(self._read())
        try:
            await self._child.wait()
            self.kill()  # what it may have started, or the pipe would stay open
            await reading
        finally:
            reading.cancel()
            self._farewell()
            self.ended.set()
            if not self._address.done():
                self._address.set_result(None)

    async def _read(self) -> None:
        assert self._child.stderr is not None
        rest = b""
        while chunk := await self._child.stderr.read(65_536):
            *lines, rest = (rest + chunk).split(b"\n")
            for line in lines:
                self._line(line)
            rest = rest[-_LINE:]
        self._line(rest)

    def _line(self, raw: bytes) -> None:
        line = raw[:_LINE].decode("utf-8", "replace").strip()
        if not line:
            return
        self.lines.append(line)
        if not self._address.done() and (found := _ADDRESS.search(line)):
            self._address.set_result(found.group())
            return
        log.log(self._level, "llama.cpp: %s", line)
        self._watch(line)
