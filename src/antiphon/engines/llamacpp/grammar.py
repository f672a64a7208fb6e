"""Grammars that the server fails to obey.

Decides which generation such a failure belongs to. The server only writes it to its log and
goes on without the grammar, so that an answer would be free text that claims to be
constrained: it must fail instead.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator

from antiphon.engines.llamacpp.completion import Completion

_PREFIX = "%llguidance"
_FAILURE = "llg error"


def in_server_form(constraint: str) -> str:
    """The grammar with the header by which the server knows its dialect."""
    return constraint if constraint.startswith(_PREFIX) else f"{_PREFIX} {{}}\n{constraint}"


class GrammarWatch:
    """Reads the server's log and fails completions whose grammar was given up.

    A grammar is compiled when its request begins. Requests with a grammar therefore begin one
    after the other, and a failure in that time is the beginning one's. A failure at another
    time has no known owner and fails every completion with a grammar.
    """

    def __init__(self) -> None:
        self.supported = True
        self._beginning = asyncio.Lock()
        self._first: Completion | None = None
        self._running: set[Completion] = set()

    @contextlib.asynccontextmanager
    async def begin(self, completion: Completion) -> AsyncIterator[None]:
        """The time in which the grammar of `completion` is compiled."""
        async with self._beginning:
            self._first = completion
            self._running.add(completion)
            try:
                yield
            finally:
                self._first = None

    def end(self, completion: Completion) -> None:
        """The completion is over, whether or not it had a grammar."""
        self._running.discard(completion)

    def line(self, line: str) -> None:
        """Look at a line of the server's log."""
        if _FAILURE not in line:
            return
        reason = f"the grammar failed: {line.partition(_FAILURE)[2].strip(' :')}"
        for completion in {self._first} if self._first else self._running:
            completion.fault = completion.fault or reason
