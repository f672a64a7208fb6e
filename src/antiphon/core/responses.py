"""The service behind the routes of `/v1/responses`.

Decides the order of checks before a generation (contract C22: nothing is generated or stored
before all of them passed) and what each operation on a stored response does. Knows no HTTP.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from antiphon.core import demands
from antiphon.core import prompt as prompts
from antiphon.core.context import (
    Context,
    ContextResolver,
    decode_items,
    encode_items,
    previous_not_found,
    storage_off,
)
from antiphon.core.echo import ReasoningEcho
from antiphon.core.eventlog import EventLog
from antiphon.core.events import EventBuilder
from antiphon.core.policy import Policy
from antiphon.core.run import Run
from antiphon.core.runs import Runs
from antiphon.core.seal import Seal
from antiphon.core.toolbox import Toolbox
from antiphon.engine.errors import (
    ConstraintRejected,
    EngineBusy,
    EngineError,
    EngineUnavailable,
    PromptRejected,
    PromptTooLong,
    VariableRejected,
)
from antiphon.engine.registry import Registry, Served
from antiphon.engine.slots import Ticket
from antiphon.engine.types import Prepared
from antiphon.errors import (
    ContextLengthExceeded,
    InvalidRequest,
    ModelNotFound,
    NotFound,
    Overloaded,
    ServerFailure,
)
from antiphon.ids import Ids
from antiphon.schema.content import OutputText
from antiphon.schema.items import Message, Reasoning, StoredItem
from antiphon.schema.requests import CreateBody, InputTokensBody, PageQuery
from antiphon.schema.response import ItemPage, Response
from antiphon.store.base import Document, Store


@dataclass(frozen=True, slots=True)
class Caller:
    """Who asks: the owner of whatever is made, and the id of this request."""

    owner: str
    request_id: str
    open_responses: bool = False


class ResponsesService:
    """Create, read, delete, cancel and count. `store` is None where storage is off."""

    def __init__(
        self,
        registry: Registry,
        store: Store | None,
        policy: Policy,
        *,
        ids: Ids | None = None,
        seal: Seal,
        echo_bytes: int = 16_777_216,
        buffer_bytes: int = 8_388_608,
    ) -> None:
        self.registry = registry
        self.runs = Runs()
        self.policy = policy
        self._store = store
        self._ids = ids or Ids()
        self._seal = seal
        self._echo = ReasoningEcho(echo_bytes)
        self._contexts = ContextResolver(store, self._ids, seal, custom_tools=policy.custom_tools)
        self._buffer_bytes = buffer_bytes

    async def create(self, body: CreateBody, caller: Caller) -> Run:
        """Check a request, then start its run.

        Raises:
            ApiError: whatever is wrong, before anything is generated or stored.
        """
        served = self._served(body.model)
        demands.check(body, served.capabilities, self.policy)
        pinned = await self._pin(body, caller)
        try:
            context = await self._context(body, caller)
            toolbox = Toolbox.of(body.tools, context.transcript.tools)
            prepared, dropped = await self._prepare(served, body, context, toolbox, caller.owner)
            ticket = _reserve(served, caller)
        except BaseException:
            await self._unpin(pinned)
            raise
        run = Run(
            owner=caller.owner,
            request_id=caller.request_id,
            engine=served.engine,
            prepared=prepared,
            ticket=ticket,
            builder=EventBuilder(
                self._opening(body),
                self._ids.new,
                obfuscate=bool(body.stream_options.include_obfuscation),
                open_responses=caller.open_responses,
                seal=self._sealer(body, caller),
                routes=toolbox.routes,
            ),
            persist=lambda final: self._persist(caller.owner, final, context, pinned, prepared),
            now=self._ids.now,
            inputs=context.items,
            demand=lambda final: prompts.unmet(prepared.prompt, final),
            events=EventLog(self._buffer_bytes) if body.stream else None,
        )
        run.ignored += demands.left_out(body)
        if dropped:
            run.ignored.append(f"input:{dropped}-oldest-items")
        self.runs.start(run)
        return run

    async def count(self, body: InputTokensBody, caller: Caller) -> int:
        """How many tokens the engine would prefill for this body (E7)."""
        served = self._served(body.model)
        demands.check(body, served.capabilities, self.policy)
        context = await self._context(body, caller)
        toolbox = Toolbox.of(body.tools, context.transcript.tools)
        try:
            prepared, _ = await self._prepare(served, body, context, toolbox, caller.owner)
        except ContextLengthExceeded as error:
            if isinstance(error.__cause__, PromptTooLong):
                return error.__cause__.tokens
            raise
        return prepared.input_tokens

    async def retrieve(self, id: str, caller: Caller) -> bytes:
        """The JSON of a response: the stored one, or the present state of one going on."""
        if self._store is None:
            raise storage_off()
        run = self.runs.get(caller.owner, id)
        if run is not None and run.response.store and not run.done.is_set():
            return run.response.encode()
        return (await self._document(id, caller)).body

    async def delete(self, id: str, caller: Caller) -> None:
        """Forget a response (E3)."""
        if self._store is None:
            raise storage_off()
        run = self.runs.get(caller.owner, id)
        if run is not None and run.response.store and not run.done.is_set():
            raise InvalidRequest(
                f"Response '{id}' has not finished (status: {run.response.status}); "
                "cancel it first."
            )
        if not await self._store.delete(caller.owner, id):
            raise response_not_found(id)

    async def cancel(self, id: str, caller: Caller) -> bytes:
        """Stop a response and return it once it is written; a finished one is unchanged."""
        run = self.runs.get(caller.owner, id)
        if run is not None:
            run.cancel()
            return (await run.final()).encode()
        if self._store is None:
            raise storage_off()
        return (await self._document(id, caller)).body

    async def input_items(self, id: str, query: PageQuery, caller: Caller) -> ItemPage:
        """A page of the items of this response's own request (E5)."""
        if self._store is None:
            raise storage_off()
        run = self.runs.get(caller.owner, id)
        if run is not None and run.response.store and not run.done.is_set():
            return _page(run.inputs, query)
        return _page(decode_items((await self._document(id, caller)).inputs), query)

    async def _document(self, id: str, caller: Caller) -> Document:
        assert self._store is not None
        document = await self._store.get(caller.owner, id)
        if document is None:
            raise response_not_found(id)
        return document

    async def _context(self, body: InputTokensBody, caller: Caller) -> Context:
        previous = body.previous_response_id
        if previous is not None:
            run = self.runs.get(caller.owner, previous)
            if run is not None and not run.done.is_set():
                if not run.response.store:
                    raise previous_not_found(previous)
                raise InvalidRequest(
                    f"previous response '{previous}' has not finished "
                    f"(status: {run.response.status})",
                    param="previous_response_id",
                )
        context = await self._contexts.resolve(caller.owner, body.input, previous)
        if context.transcript.empty and not (body.instructions or "").strip():
            raise InvalidRequest(
                "There is nothing to answer: input, history and instructions are empty.",
                param="input",
            )
        return context

    async def _prepare(
        self,
        served: Served,
        body: InputTokensBody,
        context: Context,
        toolbox: Toolbox,
        owner: str,
    ) -> tuple[Prepared, int]:
        """The prepared prompt, and how many of the oldest entries had to go for it (P4)."""
        demands.check_choice(body, toolbox, served.capabilities)
        transcript = context.transcript

        async def attempt(skip: int) -> Prepared:
            prompt = prompts.build(served.info.id, body, transcript, toolbox, self.policy, skip)
            return await served.engine.prepare(self._echo.restore(prompt, owner))

        try:
            try:
                return await attempt(0), 0
            except PromptTooLong:
                keep = transcript.last_user if body.truncation == "auto" else 0
                if not keep:
                    raise
            low, high, best = 1, keep, await attempt(keep)
            while low < high:
                middle = (low + high) // 2
                try:
                    best, high = await attempt(middle), middle
                except PromptTooLong:
                    low = middle + 1
            return best, high
        except PromptTooLong as error:
            raise ContextLengthExceeded(
                f"The prompt has {error.tokens} tokens, the context window of this model has "
                f"{error.limit}.",
                param="input",
            ) from error
        except ConstraintRejected as error:
            raise InvalidRequest(str(error), param=demands.place(toolbox, error.tool)) from error
        except VariableRejected as error:
            raise InvalidRequest(str(error), param="chat_template_kwargs") from error
        except PromptRejected as error:
            raise InvalidRequest(
                f"The model's chat template refuses this input: {error}",
                param="input",
                code="invalid_prompt",
            ) from error
        except EngineUnavailable as error:
            raise Overloaded(
                "The model is not available at the moment; please try again.",
                headers={"Retry-After": "1"},
            ) from error
        except EngineError as error:
            raise ServerFailure("The prompt could not be prepared.") from error

    async def _persist(
        self,
        owner: str,
        response: Response,
        context: Context,
        pinned: str | None,
        prepared: Prepared,
    ) -> None:
        """Write a final response, if it is to be kept, and let go of what it continued."""
        self._remember_trace(owner, response, prepared)
        try:
            if self._store is not None and response.store:
                ids = (item.id for item in (*context.items, *response.output))
                document = Document(
                    id=response.id,
                    owner=owner,
                    body=response.encode(),
                    inputs=encode_items(context.items),
                    item_ids=tuple(id for id in ids if id),
                    parent=context.parent,
                )
                if await self._store.put(document):
                    self._contexts.remember(document, context.transcript.extended(response.output))
        finally:
            await self._unpin(pinned)

    def _remember_trace(self, owner: str, response: Response, prepared: Prepared) -> None:
        """The trace of an ordinary answer may be wanted when the answer comes back (R6)."""
        match response.output:
            case [Reasoning(content=[*traces]), Message(content=[OutputText(text=text)])]:
                trace = "".join(each.text for each in traces)
                self._echo.remember(prepared.prompt, owner, text, trace)

    def _sealer(self, body: CreateBody, caller: Caller) -> Callable[[str], str] | None:
        if "reasoning.encrypted_content" not in body.include:
            return None
        return lambda trace: self._seal.close(trace, caller.owner)

    async def _pin(self, body: CreateBody, caller: Caller) -> str | None:
        """Keep the history of a chain while the run that continues it is going on (S5)."""
        previous = body.previous_response_id
        if self._store is None or previous is None:
            return None
        return previous if await self._store.pin(caller.owner, previous) else None

    async def _unpin(self, pinned: str | None) -> None:
        if self._store is not None and pinned is not None:
            await self._store.unpin(pinned)

    def _served(self, name: str) -> Served:
        served = self.registry.find(name)
        if served is None and self.policy.any_model:
            served = self.registry.default()
        if served is None:
            known = ", ".join(each.info.id for each in self.registry.models())
            raise ModelNotFound(
                f"The model '{name[:80]}' does not exist. This server has: {known}.",
                param="model",
            )
        return served

    def _opening(self, body: CreateBody) -> Response:
        return Response(
            id=self._ids.new("resp"),
            created_at=self._ids.now(),
            status="in_progress",
            model=body.model,
            instructions=body.instructions,
            max_output_tokens=body.max_output_tokens,
            max_tool_calls=body.max_tool_calls,
            parallel_tool_calls=body.parallel_tool_calls,
            previous_response_id=body.previous_response_id,
            prompt_cache_key=body.prompt_cache_key,
            reasoning=body.reasoning,
            safety_identifier=body.safety_identifier,
            store=body.store and self._store is not None,
            temperature=body.temperature,
            text=body.text,
            tool_choice=body.tool_choice,
            tools=body.tools,
            top_logprobs=body.top_logprobs,
            top_p=body.top_p,
            presence_penalty=body.presence_penalty,
            frequency_penalty=body.frequency_penalty,
            truncation=body.truncation,
            user=body.user,
            metadata=body.metadata,
        )


def _reserve(served: Served, caller: Caller) -> Ticket:
    try:
        return served.engine.slots.reserve(caller.owner)
    except EngineBusy as error:
        raise Overloaded(
            "The server is busy; please try again later.",
            headers={"Retry-After": str(error.retry_after)},
        ) from None


def response_not_found(id: str) -> NotFound:
    """The one answer for an unknown, expired, deleted or foreign id (S8)."""
    return NotFound(f"Response with id '{id[:80]}' not found.", code="response_not_found")


def _page(items: list[StoredItem], query: PageQuery) -> ItemPage:
    ordered = items if query.order == "asc" else items[::-1]
    ids = [item.id for item in ordered]
    first, last = 0, len(ordered)
    if query.after is not None:
        if query.after not in ids:
            raise InvalidRequest("No item has this id.", param="after")
        first = ids.index(query.after) + 1
    if query.before is not None:
        if query.before not in ids:
            raise InvalidRequest("No item has this id.", param="before")
        last = ids.index(query.before)
    window = ordered[first:last]
    page = window[: query.limit]
    if query.before is not None and query.after is None:
        page = window[-query.limit :]
    return ItemPage(
        data=page,
        first_id=page[0].id if page else None,
        last_id=page[-1].id if page else None,
        has_more=len(page) < len(window),
    )
