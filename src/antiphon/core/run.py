"""A run: one generation from accepted request to terminal event.

Decides the order of the end (engine stopped, document stored, terminal event published,
readers told) and that a terminal state is written once. Plain JSON, streams and cancel are
readers and callers of a run; none of them is inside it. A run is a task of its own, so a
client that leaves can never interrupt the writing of its end.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable, Sequence

from antiphon import sse
from antiphon.core.eventlog import EventLog, Reader
from antiphon.core.events import EventBuilder, Frame
from antiphon.engine.errors import EngineError, EngineUnavailable, PromptRejected, PromptTooLong
from antiphon.engine.generation import Generation
from antiphon.engine.protocol import Engine
from antiphon.engine.slots import Ticket
from antiphon.engine.types import Delta, Prepared
from antiphon.schema.items import StoredItem
from antiphon.schema.response import Response, ResponseError

log = logging.getLogger("antiphon.run")

Persist = Callable[[Response], Awaitable[None]]


class Run:
    """One generation. `start` begins it; `done` is set when everything is written.

    `inputs` are the items of the request. `persist` stores the final response; it is called
    once, before the terminal event is published. `demand` says what a completed response lacks
    of what was demanded. `events` is None where nobody will ever read events.
    """

    def __init__(
        self,
        *,
        owner: str,
        request_id: str,
        engine: Engine,
        prepared: Prepared,
        ticket: Ticket,
        builder: EventBuilder,
        persist: Persist,
        now: Callable[[], int],
        inputs: Sequence[StoredItem] = (),
        demand: Callable[[Response], str | None] | None = None,
        events: EventLog | None = None,
    ) -> None:
        self.owner = owner
        self.request_id = request_id
        self.done = asyncio.Event()
        self.ignored: list[str] = []
        self.inputs = list(inputs)
        self._engine = engine
        self._prepared = prepared
        self._ticket = ticket
        self._builder = builder
        self._persist = persist
        self._now = now
        self._demand = demand
        self._events = events
        self._generation: Generation | None = None
        self._cancelled = False
        self._attached = 0
        self._began = time.monotonic()
        self._first: float | None = None
        self._error: str | None = None

    @property
    def id(self) -> str:
        """The id of the response."""
        return self._builder.response.id

    @property
    def response(self) -> Response:
        """The response as it stands: without output until the end is written."""
        return self._builder.response

    def start(self) -> asyncio.Task[None]:
        """Begin. The opening events are there at once, before the engine is asked."""
        self._publish(self._builder.start())
        return asyncio.get_running_loop().create_task(self._drive(), name=self.id)

    def cancel(self) -> None:
        """Ask for the end. Synchronous and idempotent; `done` says when it has come."""
        self._cancelled = True
        if self._generation is not None:
            self._generation.cancel()
        else:
            self._ticket.release()

    def attach(self) -> None:
        """Count a client that waits for this run."""
        self._attached += 1

    def detach(self) -> None:
        """A client is gone. Nobody left means nobody wants the answer (O13)."""
        self._attached -= 1
        if self._attached <= 0 and not self.done.is_set():
            self.cancel()

    def subscribe(self, after: int = -1) -> Reader:
        """A reader of the events with numbers greater than `after`."""
        assert self._events is not None
        return self._events.reader(after)

    async def final(self) -> Response:
        """The final response, once it is stored."""
        await self.done.wait()
        return self.response

    async def _drive(self) -> None:
        try:
            failure = await self._generate()
            await self._end(failure)
        except Exception:
            log.exception("run %s could not be ended (request %s)", self.id, self.request_id)
            self._builder.response = self._builder.response.model_copy(
                update={"status": "failed", "error": _error(EngineError())}
            )
        finally:
            if self._events is not None:
                self._events.close()
            self.done.set()
            self._report()

    async def _generate(self) -> EngineError | None:
        """Feed what the engine says. Returns only after the engine has stopped."""
        try:
            if not await self._ticket.acquire() or self._cancelled:
                return None
            self._generation = self._engine.generate(self._prepared)
            await self._generation.pipe(self._take)
            if not self._builder.finished and not self._generation.cancelled:
                raise EngineError("the engine ended without saying how")
        except EngineError as error:
            return error
        except Exception as error:
            log.exception("run %s failed (request %s)", self.id, self.request_id)
            return EngineError(f"{type(error).__name__}: {error}")
        finally:
            if self._generation is not None:
                self._generation.cancel()
                await self._generation.stopped()
            self._ticket.release()
        return None

    def _take(self, delta: Delta) -> None:
        frames = self._builder.feed(delta)
        if frames:
            if self._first is None:
                self._first = time.monotonic()
            self._publish(frames)

    async def _end(self, failure: EngineError | None) -> None:
        if self._cancelled and not self._builder.finished:
            self._publish(self._builder.cancel())
        elif failure is not None:
            self._error = str(failure)
            self._publish(self._builder.fail(_error(failure)))
        else:
            self._publish(self._builder.finish(self._now()))
            self._check_demand()
        try:
            await self._persist(self.response)
        except Exception as error:
            # A full disk is the client's business too: it must not chain on what is not there.
            log.exception("response %s could not be stored", self.id)
            self._error = f"not stored: {error}"
            self._publish(self._builder.fail(_error(EngineError("not stored"))))
        self._publish([self._builder.terminal()])

    def _check_demand(self) -> None:
        if self._demand is None or self.response.status != "completed":
            return
        if (lacking := self._demand(self.response)) is not None:
            self._error = lacking
            error = ResponseError(code="server_error", message=f"The model failed: {lacking}.")
            self._publish(self._builder.fail(error))

    def _publish(self, frames: list[Frame]) -> None:
        if self._events is not None:
            for frame in frames:
                self._events.append(sse.frame(frame.type, frame.data))

    def _report(self) -> None:
        response, usage = self.response, self.response.usage
        log.info(
            "run id=%s request=%s model=%s status=%s input_tokens=%s output_tokens=%s "
            "first_ms=%s total_ms=%d%s",
            response.id,
            self.request_id,
            response.model,
            response.status,
            usage.input_tokens if usage else "-",
            usage.output_tokens if usage else "-",
            int((self._first - self._began) * 1000) if self._first else "-",
            (time.monotonic() - self._began) * 1000,
            f" error={self._error!r}" if self._error else "",
        )


def _error(failure: EngineError) -> ResponseError:
    """What the client may know of a failure; the rest is in the log (O11)."""
    match failure:
        case PromptTooLong():
            return ResponseError(code="context_length_exceeded", message=str(failure))
        case PromptRejected():
            return ResponseError(code="invalid_prompt", message=str(failure))
        case EngineUnavailable():
            return ResponseError(code="server_error", message="The engine is not available.")
        case _:
            return ResponseError(code="server_error", message="The generation failed.")
