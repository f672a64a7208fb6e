"""The embedded engine: one GGUF model, run by llama.cpp in a child process.

Decides how a `Prompt` becomes token ids and how the server's chunks become deltas. Rendering
is `text`'s, the child is the supervisor's, admission is the caller's by way of `slots`.
Contract N1, N7, N8.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from antiphon.engine.errors import EngineError, EngineUnavailable, PromptRejected, PromptTooLong
from antiphon.engine.generation import Emit, Generation
from antiphon.engine.slots import Slots
from antiphon.engine.types import (
    Capabilities,
    Finish,
    ModelInfo,
    Prefill,
    Prepared,
    Prompt,
    Sampling,
    TokenLogprob,
    Usage,
)
from antiphon.engines import gguf
from antiphon.engines.llamacpp.client import ConnectionLost, Json, LlamaClient
from antiphon.engines.llamacpp.completion import Completion
from antiphon.engines.llamacpp.config import DEFAULT_CONTEXT, LlamaConfig
from antiphon.engines.llamacpp.grammar import in_server_form
from antiphon.engines.llamacpp.supervisor import Supervisor, Worker
from antiphon.text import plan, profiles
from antiphon.text.answer import AnswerParser
from antiphon.text.plan import Plan
from antiphon.text.profiles import Profile
from antiphon.text.sentinel import Segment
from antiphon.text.stops import StopFilter
from antiphon.text.template import PromptTemplate

# Where a client says nothing: small models need their unlikeliest tokens cut, as every local
# server does. A client that wants the bare distribution sends 0 for both.
TOP_K, MIN_P = 40, 0.05
# How long a request that waits for its turn waits for a worker that died, too.
RESTART_SECONDS = 30.0
# The server takes this seed as "a random one".
_RANDOM_SEED = 0xFFFF_FFFF


@dataclass(frozen=True, slots=True)
class _Payload:
    """Token ids of the prompt, how many tokens the answer may have, and what to do with it."""

    tokens: list[int]
    room: int
    plan: Plan


class LlamaEngine:
    """`Engine` for one model file. `start` loads it, `close` ends the child process."""

    def __init__(self, config: LlamaConfig) -> None:
        self._config = config
        self._slots = Slots(config.slots, config.waiting)
        self._supervisor: Supervisor | None = None
        self._template: PromptTemplate | None = None
        self._info: ModelInfo | None = None
        self._profile = profiles.detect(None)
        self._constraints = False

    @property
    def slots(self) -> Slots:
        """Admission to this engine."""
        return self._slots

    @property
    def ready(self) -> bool:
        """Whether the worker takes requests."""
        return self._supervisor is not None and self._supervisor.up.is_set()

    @property
    def worker(self) -> Worker:
        """The child process that takes requests now.

        Raises:
            EngineUnavailable: there is none.
        """
        if self._supervisor is None:
            raise EngineUnavailable("the engine was not started")
        return self._supervisor.worker

    async def _up_again(self) -> Worker:
        """The worker; one that is being restarted is waited for (N8)."""
        if not self.ready:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(RESTART_SECONDS):
                    await self.until_ready()
        return self.worker

    async def until_ready(self) -> None:
        """Return when the worker takes requests, after a restart too."""
        assert self._supervisor is not None
        await self._supervisor.up.wait()

    def models(self) -> Sequence[ModelInfo]:
        """The model, once it is loaded."""
        return () if self._info is None else (self._info,)

    def capabilities(self, model: str) -> Capabilities:
        """What the model can do; the same for every id."""
        return Capabilities(tools=True, constraints=self._constraints, logprobs=True)

    async def start(self) -> None:
        """Read the model file, then load it in a child process.

        Raises:
            EngineError: either fails; the message is one line for the operator.
        """
        config = self._config
        try:
            file = gguf.read(config.model_path)
        except gguf.GgufError as error:
            raise EngineError(str(error)) from None
        self._template = PromptTemplate(
            file.chat_template if config.template is None else config.template,
            bos_token=file.bos_token,
            eos_token=file.eos_token,
            control_tokens=file.control_tokens,
            user_defined_tokens=file.user_defined_tokens,
        )
        try:
            self._profile = profiles.override(
                profiles.detect(self._template.source, tools=self._template.traits.tools),
                config.tool_format,
                config.reasoning_format,
            )
        except ValueError as error:
            raise EngineError(str(error)) from None
        if file.context_length and config.ctx_size > file.context_length:
            raise EngineError(
                f"--ctx-size {config.ctx_size} is more than the {file.context_length} tokens that "
                "this model can take"
            )
        most = min(file.context_length or DEFAULT_CONTEXT, DEFAULT_CONTEXT)
        self._supervisor = Supervisor(config, config.ctx_size or most)
        await self._supervisor.start()
        worker = self.worker
        self._constraints = worker.grammars.supported
        self._info = ModelInfo(
            config.model_id,
            context_window=worker.window,
            created=int(config.model_path.stat().st_mtime),
            names=config.names,
        )

    async def close(self) -> None:
        """End the child process. Idempotent."""
        if self._supervisor is not None:
            await self._supervisor.close()

    async def prepare(self, prompt: Prompt) -> Prepared:
        """Render and tokenise.

        Raises:
            PromptTooLong: the prompt fills the context window.
            PromptRejected: the template refuses it, or it renders to nothing.
            EngineUnavailable: the worker is away.
        """
        assert self._template is not None
        segments = self._template.render(prompt)
        answer = plan.make(
            prompt,
            self._profile,
            "".join(each.text for each in segments),
            native=self._template.traits.tools,
        )
        worker = self.worker
        try:
            tokens = await _tokens(worker.client, segments)
        except ConnectionLost as lost:
            raise EngineUnavailable(str(await worker.judge(lost))) from None
        if worker.bos and tokens[: len(worker.bos)] != worker.bos:
            tokens = worker.bos + tokens
        if not tokens:
            raise PromptRejected("The model's chat template renders nothing.")
        room = worker.window - len(tokens)
        if room < 1:
            raise PromptTooLong(len(tokens), worker.window)
        return Prepared(prompt, len(tokens), _Payload(tokens, room, answer))

    def generate(self, prepared: Prepared) -> Generation:
        """Start to generate what `prepare` returned."""

        async def produce(emit: Emit) -> None:
            worker = await self._up_again()
            completion = Completion(worker.client, _body(prepared, self._profile))
            try:
                await _produce(worker, completion, prepared, emit)
            except ConnectionLost as lost:
                raise await worker.judge(lost) from None
            finally:
                worker.grammars.end(completion)
                await completion.release()

        return Generation(produce)


async def _tokens(client: LlamaClient, segments: Sequence[Segment]) -> list[int]:
    special = [[segment.text] for segment in segments if segment.special]
    # Taken apart behind the first character: the server finds tokens that a model defines for
    # its own use (`<think>`) in plain text too.
    plain = [[segment.text[:1], segment.text[1:]] for segment in segments if not segment.special]
    marked = iter(await client.tokenize(special, special=True))
    unmarked = iter(await client.tokenize(plain, special=False) if plain else [])
    tokens: list[int] = []
    for segment in segments:
        tokens += next(marked if segment.special else unmarked)
    return tokens


async def _produce(worker: Worker, completion: Completion, prepared: Prepared, emit: Emit) -> None:
    sampling = prepared.prompt.sampling
    payload: _Payload = prepared.payload
    stops = StopFilter(sampling.stop)
    parser = payload.plan.parser()
    pending: list[TokenLogprob] = []
    usage: Json = {}
    async with contextlib.AsyncExitStack() as beginning:
        if payload.plan.constraint is not None:
            await beginning.enter_async_context(worker.grammars.begin(completion))
        await completion.begin()
        await emit(Prefill())
        async for chunk in completion.chunks():
            if "stop_type" in chunk:
                cut = chunk["stop_type"] == "limit"
                rest = parser.feed(stops.end(), tuple(pending), tokens=0)
                for delta in (*rest, *parser.end(cut=cut)):
                    await emit(delta)
                await emit(
                    _usage(chunk["tokens_predicted"], chunk["timings"]["cache_n"], prepared, parser)
                )
                await emit(Finish("length" if cut else "stop"))
                return
            if "prompt_progress" in chunk:
                usage = chunk["prompt_progress"]
                continue
            # The first token is there, so the grammar was compiled: others may begin.
            await beginning.aclose()
            pending += _logprobs(chunk, sampling)
            if text := stops.feed(chunk["content"]):
                for delta in parser.feed(text, tuple(pending)):
                    await emit(delta)
                pending = []
            if stops.stopped or parser.satisfied:
                for delta in parser.end():
                    await emit(delta)
                await emit(
                    _usage(chunk["tokens_predicted"], usage.get("cache", 0), prepared, parser)
                )
                await emit(Finish("stop"))
                return


def _body(prepared: Prepared, profile: Profile) -> Json:
    """The request. Nothing is left to the server's own defaults."""
    sampling = prepared.prompt.sampling
    payload: _Payload = prepared.payload
    wanted = payload.room if sampling.max_tokens is None else sampling.max_tokens
    body: Json = {
        "prompt": payload.tokens,
        "n_predict": min(wanted, payload.room),
        # Temperature comes first, as in the field: `top_p` cuts what is really drawn from.
        "samplers": ["penalties", "temperature", "top_k", "top_p", "min_p"],
        "temperature": sampling.temperature,
        "top_p": sampling.top_p,
        "top_k": TOP_K if sampling.top_k is None else sampling.top_k,
        "min_p": MIN_P if sampling.min_p is None else sampling.min_p,
        "presence_penalty": sampling.presence_penalty,
        "frequency_penalty": sampling.frequency_penalty,
        "repeat_penalty": sampling.repetition_penalty or 1.0,
        "repeat_last_n": len(payload.tokens) + payload.room,
    }
    if sampling.seed is not None:
        body["seed"] = sampling.seed % _RANDOM_SEED
    if sampling.logprobs is not None:
        body["n_probs"] = max(1, sampling.logprobs)
    if payload.plan.constraint is not None:
        body["grammar"] = in_server_form(payload.plan.constraint)
    if profile.markers:
        # Markers that are special tokens would not be shown.
        body["preserved_tokens"] = list(profile.markers)
    return body


def _usage(generated: int, cached: int, prepared: Prepared, parser: AnswerParser) -> Usage:
    return Usage(prepared.input_tokens, generated, cached, parser.reasoning_tokens)


def _logprobs(chunk: Json, sampling: Sampling) -> list[TokenLogprob]:
    """The tokens of a chunk. One without bytes is the end of the turn and no text.

    A character that took several tokens comes as one, with the last one's log-probability:
    the server does not tell those of the others.
    """
    if sampling.logprobs is None:
        return []
    return [
        _logprob(entry, sampling.logprobs)
        for entry in chunk.get("completion_probabilities", ())
        if entry["bytes"]
    ]


def _logprob(entry: Any, alternatives: int) -> TokenLogprob:
    raw = bytes(entry["bytes"])
    try:
        token = raw.decode()
    except UnicodeDecodeError:
        # A part of a character, written as OpenAI writes it.
        token = "bytes:" + "".join(f"\\x{byte:02x}" for byte in raw)
    top = entry.get("top_logprobs", ())[:alternatives]
    return TokenLogprob(
        token, entry["logprob"], tuple(raw), tuple(_logprob(other, 0) for other in top)
    )
