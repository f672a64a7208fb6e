"""One completion on a worker, from the request to the moment its slot is free again.

Decides how a completion is begun, recognised in the server, and let go of. Knows nothing of
prompts or deltas: it passes on what the server sends.
"""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import logging
from collections.abc import AsyncIterator, Coroutine
from typing import Any

import aiohttp

from antiphon.engine.errors import EngineError
from antiphon.engines.llamacpp.client import Json, LlamaClient, events

log = logging.getLogger("antiphon.engine")

_POLL_SECONDS = 0.02
_RELEASE_SECONDS = 15.0
# Marks a request in the server's list of slots. The parameter says how many tokens a context
# shift discards, and context shifts are off, so that it changes nothing.
_MARK = "n_discard"
_marks = itertools.count(1)


class Completion:
    """A request to `client`. After `begin`, in whatever way it went, `release` must follow."""

    def __init__(self, client: LlamaClient, body: Json) -> None:
        self._client = client
        self._mark = next(_marks)
        self._body = {
            **body,
            _MARK: self._mark,
            "stream": True,
            "cache_prompt": True,
            # Without progress events the server would not notice in prefill that we left.
            "return_progress": True,
            "response_fields": ["stop_type", "tokens_predicted", "tokens_evaluated", "timings"],
        }
        self._opening: asyncio.Task[aiohttp.ClientResponse] | None = None
        self._ended = False
        self.fault: str | None = None

    async def begin(self) -> None:
        """Send the request; returns when the server has begun to work on it.

        Raises:
            EngineError: it refuses, or it is away.
        """
        self._opening = asyncio.create_task(self._client.complete(self._body))
        # Shielded: a request that was cut while it is sent may have reached the server or
        # not; `release` must know.
        await asyncio.shield(self._opening)

    async def chunks(self) -> AsyncIterator[Json]:
        """What the server sends; the last one has `stop_type`.

        Raises:
            EngineError: the server failed, or `fault` was set meanwhile.
        """
        assert self._opening is not None
        async for chunk in events(self._opening.result()):
            if self.fault is not None:
                raise EngineError(self.fault)
            self._ended = "stop_type" in chunk
            yield chunk
            if self._ended:
                return

    async def release(self) -> None:
        """Close the connection and wait until the server's slot is free. Never raises.

        A second cancellation of the caller does not interrupt it.
        """
        await _to_the_end(self._release())

    async def _release(self) -> None:
        if self._opening is None:
            return
        try:
            async with asyncio.timeout(_RELEASE_SECONDS):
                answer = await self._opening
                answer.close()
                # The server has no event for it, so it is asked.
                while not self._ended and await self._running():  # noqa: ASYNC110
                    await asyncio.sleep(_POLL_SECONDS)
        except EngineError:
            pass  # refused, or the worker is gone, and the request with it
        except TimeoutError:
            log.warning("llama.cpp did not let go of a request in %d s", _RELEASE_SECONDS)

    async def _running(self) -> bool:
        return any(
            slot.get("params", {}).get(_MARK) == self._mark for slot in await self._client.busy()
        )


async def _to_the_end(work: Coroutine[Any, Any, None]) -> None:
    task = asyncio.create_task(work)
    while not task.done():
        with contextlib.suppress(asyncio.CancelledError):
            await asyncio.wait({task})
