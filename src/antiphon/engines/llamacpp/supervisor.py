"""Keeps one worker alive: starts it, notices its death, starts it again.

Decides when a worker counts as dead (it ended, or it answers no health check) and how long to
wait before the next attempt. Knows no prompt. Contract N8, B10.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import secrets
import time
from dataclasses import dataclass, field

from antiphon.engine.errors import EngineError, EngineUnavailable
from antiphon.engines.llamacpp.client import ConnectionLost, LlamaClient
from antiphon.engines.llamacpp.command import command, environment, how_it_ended, why_it_failed
from antiphon.engines.llamacpp.completion import Completion
from antiphon.engines.llamacpp.config import LlamaConfig
from antiphon.engines.llamacpp.grammar import GrammarWatch
from antiphon.engines.llamacpp.process import Process

log = logging.getLogger("antiphon.engine")

_HEALTH_SECONDS = 5.0
_LOADING_SECONDS = 0.1
# A broken connection is seen some milliseconds before the end of the process is.
_DEATH_SECONDS = 1.0
_FIRST_DELAY, _LAST_DELAY = 0.1, 30.0
# A worker that lived this long was well: the next delay is the first again.
_WELL_SECONDS = 60.0


@dataclass
class Worker:
    """A child process that serves.

    `window` is the context of a slot in tokens; `bos` are the token ids that the model wants
    in front of a prompt.
    """

    process: Process
    client: LlamaClient
    grammars: GrammarWatch
    window: int = 0
    bos: list[int] = field(default_factory=list)

    async def judge(self, lost: ConnectionLost) -> EngineError:
        """What a lost connection means: mostly that the process has just died."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(_DEATH_SECONDS):
                await self.process.ended.wait()
        return EngineError(f"llama.cpp {self.epitaph}") if self.process.ended.is_set() else lost

    @property
    def epitaph(self) -> str:
        """How the process ended."""
        return how_it_ended(self.process.lines, self.process.code)

    async def close(self) -> None:
        """End the process and close the connections."""
        # In this order: a reader learns of a connection that the other side closed.
        await self.process.close()
        await self.client.close()


class Supervisor:
    """The present worker of an engine, and the task that replaces it."""

    def __init__(self, config: LlamaConfig, ctx_size: int) -> None:
        self._config = config
        self._ctx_size = ctx_size
        self._worker: Worker | None = None
        self._task: asyncio.Task[None] | None = None
        self.up = asyncio.Event()

    @property
    def worker(self) -> Worker:
        """The worker that takes requests now.

        Raises:
            EngineUnavailable: there is none.
        """
        if self._worker is None or not self.up.is_set():
            raise EngineUnavailable("llama.cpp is not running; it is being started")
        return self._worker

    async def start(self) -> None:
        """Start the first worker.

        Raises:
            EngineError: it does not start; the message is one line for the operator.
        """
        self._serve(await self._launch())
        self._task = asyncio.create_task(self._supervise())

    async def close(self) -> None:
        """End the worker and do not replace it. Idempotent."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.wait({self._task})
        worker, self._worker = self._worker, None
        if worker is not None:
            await worker.close()

    def _serve(self, worker: Worker) -> None:
        self._worker = worker
        self.up.set()

    async def _supervise(self) -> None:
        delay = _FIRST_DELAY
        while True:
            began = time.monotonic()
            assert self._worker is not None
            why = await self._watch(self._worker)
            worker, self._worker = self._worker, None
            await worker.close()
            log.error("llama.cpp %s; starting it again", why)
            if time.monotonic() - began > _WELL_SECONDS:
                delay = _FIRST_DELAY
            while self._worker is None:
                await asyncio.sleep(delay)
                delay = min(delay * 2, _LAST_DELAY)
                try:
                    self._serve(await self._launch())
                except EngineError as error:
                    log.error("%s; next attempt in %.1f s", error, delay)
            log.info("llama.cpp runs again")

    async def _watch(self, worker: Worker) -> str:
        """Return when the worker is dead, with the reason."""
        process = worker.process
        while True:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(min(_HEALTH_SECONDS, self._config.hang_seconds)):
                    await process.ended.wait()
            if process.ended.is_set():
                return worker.epitaph
            if not await worker.client.healthy(self._config.hang_seconds):
                process.kill()
                await process.ended.wait()
                return f"did not answer for {self._config.hang_seconds:.0f} s"

    async def _launch(self) -> Worker:
        key = secrets.token_urlsafe(32)
        grammars = GrammarWatch()
        packaged = self._config.llama_server is None
        process = await Process.start(
            command(self._config, self._ctx_size),
            environment(key),
            # The packaged worker writes errors only; the binary tells all that it does.
            level=logging.WARNING if packaged else logging.DEBUG,
            watch=grammars.line,
            farewell=self.up.clear,
        )
        worker: Worker | None = None
        try:
            address = await process.address()
            if address is None:
                raise EngineError(
                    why_it_failed(process.lines, process.code, self._config.model_path)
                )
            worker = Worker(process, LlamaClient(address, key), grammars)
            await self._loaded(worker)
            await _ask(worker)
        except BaseException:
            process.kill()
            await (worker or process).close()
            raise
        return worker

    async def _loaded(self, worker: Worker) -> None:
        """Return when the model is loaded: a llama-server listens before that."""
        while not await worker.client.healthy(self._config.hang_seconds):
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(_LOADING_SECONDS):
                    await worker.process.ended.wait()
            if worker.process.ended.is_set():
                raise EngineError(
                    why_it_failed(
                        worker.process.lines, worker.process.code, self._config.model_path
                    )
                )


async def _ask(worker: Worker) -> None:
    """Find out what depends on the loaded model, by asking rather than by guessing."""
    client = worker.client
    worker.window = await client.context_size()
    (plain,) = await client.tokenize([["a"]], special=False)
    (whole,) = await client.tokenize([["a"]], special=False, add_special=True)
    at = next((i for i in range(len(whole)) if whole[i : i + len(plain)] == plain), 0)
    worker.bos = whole[:at]
    worker.grammars.supported = await _constrains(client)


async def _constrains(client: LlamaClient) -> bool:
    """Whether grammars are obeyed: a server built without llguidance refuses them."""
    token = (await client.tokenize([["a"]], special=False))[0]
    completion = Completion(
        client, {"prompt": token, "n_predict": 4, "grammar": '%llguidance {}\nstart: "zq"'}
    )
    text = ""
    try:
        await completion.begin()
        async for chunk in completion.chunks():
            text += chunk.get("content", "")
    except EngineError:
        return False
    finally:
        await completion.release()
    return text == "zq"
