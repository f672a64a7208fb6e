"""The scripted engine: says what a script tells it to, byte for byte and on time.

Decides nothing about text. It ships with the product (`--engine scripted --script FILE`) for
tests, demonstrations and client development, and passes the same contract suite as every
other engine. It records what it was asked and when it was cancelled.

A script is JSON: `{"model", "slots", "context_window", "answers": [ANSWER, …]}` or one ANSWER.
Requests take the answers in order, the last one again and again. Without a script the engine
repeats the last user turn. Keys of an ANSWER, all optional:

    chunks        pieces of raw text, a token each   bytes_hex    the same as bytes in hex
    reasoning     a trace before the text            tool_calls   [{"name", "arguments"}, …]
    sequence      [{"text"} | {"reasoning"} | {"tool_call"}, …] in this order
    tool_call_deltas  {"name", "parts"}: one call whose arguments come in these parts
    tool_format, reasoning_format  how raw text is read, as in the flags of these names
    prompt_ends_with  what the rendered prompt would end with
    finish        "stop" (default) or "length"       infinite     repeat the pieces for ever
    prefill_ms    silence before the first piece     ms_per_token silence before each piece
    error_after   fail after so many pieces          refuse_at_admission  answer 503
    wait_for      a gate to be opened by `open_gate` before the first piece
    cached_tokens reported in the usage
"""

from __future__ import annotations

import asyncio
import codecs
import functools
import itertools
import json
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from antiphon.engine.errors import EngineError, EngineUnavailable, PromptTooLong
from antiphon.engine.generation import Emit, Generation
from antiphon.engine.slots import Slots
from antiphon.engine.types import (
    CallArguments,
    CallEnd,
    CallStart,
    Capabilities,
    Delta,
    Finish,
    ModelInfo,
    Prefill,
    Prepared,
    Prompt,
    Reasoning,
    Text,
    Usage,
)
from antiphon.text import plan, profiles
from antiphon.text.plan import Plan
from antiphon.text.profiles import Profile
from antiphon.text.stops import StopFilter

CHARACTERS_PER_TOKEN = 4
KEYS = frozenset(
    {
        *("model", "slots", "context_window", "cached_tokens", "refuse_at_admission"),
        *("chunks", "bytes_hex", "reasoning", "sequence", "finish", "infinite", "error_after"),
        *("tool_call", "tool_calls", "tool_call_deltas", "tool_format"),
        *("reasoning_format", "reasoning_model", "prompt_ends_with"),
        *("prefill_ms", "ms_per_token", "wait_for"),
    }
)


@dataclass(eq=False)
class Call:
    """One generation as the engine saw it. `ended` is set when it let go of it."""

    prompt: Prompt
    pieces: int = 0
    cancelled: bool = False
    begun: asyncio.Event = field(default_factory=asyncio.Event)
    ended: asyncio.Event = field(default_factory=asyncio.Event)


class ScriptedEngine:
    """An `Engine` without a model. `calls` are all generations so far, in order."""

    def __init__(
        self, script: Mapping[str, Any] | None = None, *, slots: int = 4, waiting: int = 256
    ) -> None:
        script = script or {}
        self._answers: Sequence[Mapping[str, Any]] = script.get("answers", [script])
        self._model = str(script.get("model", "scripted"))
        self._window = int(script.get("context_window", 1_000_000))
        self._created = int(time.time())
        self._next = itertools.count()
        self._gates: dict[str, asyncio.Event] = {}
        self._running: set[Generation] = set()
        self.slots = Slots(int(script.get("slots", slots)), waiting)
        self.calls: list[Call] = []
        self.ready = False

    @classmethod
    def load(cls, path: Path, *, slots: int, waiting: int) -> ScriptedEngine:
        """Read a script file. Raises EngineError with one line for the operator."""
        try:
            script = json.loads(path.read_text("utf-8"))
        except (OSError, ValueError) as error:
            raise EngineError(f"cannot read the script {path}: {error}") from None
        if not isinstance(script, dict):
            raise EngineError(f"the script {path} must be a JSON object")
        answers = script.get("answers", [script])
        if not isinstance(answers, list) or not answers:
            raise EngineError(f"the script {path} has no answers")
        for answer in answers:
            if not isinstance(answer, dict) or (unknown := answer.keys() - KEYS):
                known = "" if not isinstance(answer, dict) else f": unknown key '{min(unknown)}'"
                raise EngineError(f"the script {path} has a bad answer{known}")
        return cls(script, slots=slots, waiting=waiting)

    def open_gate(self, name: str) -> None:
        """Let answers that wait for this gate go on."""
        self._gate(name).set()

    def models(self) -> Sequence[ModelInfo]:
        return [ModelInfo(self._model, self._window, self._created)]

    def capabilities(self, model: str) -> Capabilities:
        return Capabilities(tools=True, constraints=True)

    async def start(self) -> None:
        self.ready = True

    async def prepare(self, prompt: Prompt) -> Prepared:
        if not self.ready or self._answer(len(self.calls)).get("refuse_at_admission"):
            raise EngineUnavailable("refused by the script")
        tokens = _count(prompt)
        if tokens >= self._window:
            raise PromptTooLong(tokens, self._window)
        self._plan(prompt, self._answer(len(self.calls)))
        return Prepared(prompt, tokens)

    def generate(self, prepared: Prepared) -> Generation:
        call = Call(prepared.prompt)
        self.calls.append(call)
        answer = self._answer(next(self._next))
        self._running = {running for running in self._running if not running.ended}
        generation = Generation(lambda emit: self._produce(call, prepared, answer, emit))
        self._running.add(generation)
        return generation

    async def close(self) -> None:
        self.ready = False
        for generation in list(self._running):
            generation.cancel()
            await generation.stopped()
        self._running.clear()

    def _answer(self, index: int) -> Mapping[str, Any]:
        return self._answers[min(index, len(self._answers) - 1)]

    def _plan(self, prompt: Prompt, answer: Mapping[str, Any]) -> Plan:
        """Demands are checked as any engine would; keeping to them is up to the script."""
        thinks = answer.get("reasoning_model", True)
        profile = _profile(
            answer.get("tool_format", "hermes"),
            answer.get("reasoning_format", "think" if thinks else "none"),
        )
        return plan.make(prompt, profile, str(answer.get("prompt_ends_with", "")))

    def _gate(self, name: str) -> asyncio.Event:
        return self._gates.setdefault(name, asyncio.Event())

    async def _produce(
        self, call: Call, prepared: Prepared, answer: Mapping[str, Any], emit: Emit
    ) -> None:
        try:
            await self._speak(call, prepared, answer, emit)
        except asyncio.CancelledError:
            call.cancelled = True
            raise
        finally:
            call.ended.set()

    async def _speak(
        self, call: Call, prepared: Prepared, answer: Mapping[str, Any], emit: Emit
    ) -> None:
        await emit(Prefill())
        call.begun.set()
        if gate := answer.get("wait_for"):
            await self._gate(str(gate)).wait()
        if wait := answer.get("prefill_ms"):
            await asyncio.sleep(wait / 1000)
        sampling = prepared.prompt.sampling
        stops = StopFilter(sampling.stop)
        room = self._window - prepared.input_tokens
        limit = min(sampling.max_tokens or room, room)
        parser = self._plan(prepared.prompt, answer).parser()
        pause, fault = answer.get("ms_per_token", 0) / 1000, answer.get("error_after", -1)
        reasoning = 0
        finish = answer.get("finish", "stop")
        for delta in _deltas(answer, prepared.prompt):
            if call.pieces == fault:
                raise EngineError("failed by the script")
            if not isinstance(delta, CallStart | CallEnd):
                if call.pieces >= limit:
                    finish = "length"
                    break
                if pause:
                    await asyncio.sleep(pause)
                call.pieces += 1
                reasoning += isinstance(delta, Reasoning)
            if isinstance(delta, Text):
                for parsed in parser.feed(stops.feed(delta.text)):
                    await emit(parsed)
            else:
                await emit(delta)
            if stops.stopped or parser.satisfied:
                finish = "stop"
                break
        if call.pieces == fault:
            raise EngineError("failed by the script")
        for parsed in (*parser.feed(stops.end(), tokens=0), *parser.end(cut=finish == "length")):
            await emit(parsed)
        cached = int(answer.get("cached_tokens", 0))
        reasoning += parser.reasoning_tokens
        await emit(Usage(prepared.input_tokens, call.pieces, cached, reasoning))
        await emit(Finish("length" if finish == "length" else "stop"))


@functools.cache
def _profile(tool_format: str, reasoning_format: str) -> Profile:
    return profiles.override(profiles.detect(None), tool_format, reasoning_format)


def _deltas(answer: Mapping[str, Any], prompt: Prompt) -> Iterator[Delta]:
    steps = list(_steps(answer, prompt))
    if answer.get("infinite"):
        return itertools.cycle(steps or [Text("again ")])
    return iter(steps)


def _steps(answer: Mapping[str, Any], prompt: Prompt) -> Iterator[Delta]:
    if trace := answer.get("reasoning"):
        yield from map(Reasoning, [trace] if isinstance(trace, str) else trace)
    for step in answer.get("sequence", ()):
        if "text" in step:
            yield Text(step["text"])
        elif "reasoning" in step:
            yield Reasoning(step["reasoning"])
        else:
            yield from _call(step["tool_call"])
    if "chunks" in answer:
        yield from map(Text, answer["chunks"])
    elif "bytes_hex" in answer:
        yield from _decoded(bytes.fromhex(piece) for piece in answer["bytes_hex"])
    elif not _has_output(answer):
        words = prompt.turns[-1].content.split(" ") if prompt.turns else []
        yield from (Text(word if n == 0 else f" {word}") for n, word in enumerate(words))
    for call in (*answer.get("tool_calls", ()), *_one(answer, "tool_call")):
        yield from _call(call)
    for call in _one(answer, "tool_call_deltas"):
        yield from _call({"name": call["name"], "arguments": call["parts"]})


def _one(answer: Mapping[str, Any], key: str) -> tuple[Mapping[str, Any], ...]:
    return (answer[key],) if key in answer else ()


def _has_output(answer: Mapping[str, Any]) -> bool:
    keys = ("sequence", "tool_calls", "tool_call", "tool_call_deltas", "reasoning")
    return any(key in answer for key in keys)


def _call(call: Mapping[str, Any]) -> Iterator[Delta]:
    yield CallStart(call["name"], call.get("call_id"))
    arguments = call.get("arguments", "")
    yield from map(CallArguments, [arguments] if isinstance(arguments, str) else arguments)
    yield CallEnd()


def _decoded(pieces: Iterator[bytes]) -> Iterator[Delta]:
    """Whole characters only; a character that never ends is dropped."""
    decoder = codecs.getincrementaldecoder("utf-8")("ignore")
    for piece in pieces:
        yield Text(decoder.decode(piece))


def _count(prompt: Prompt) -> int:
    """An estimate that grows with the text, a fixed one per turn and tool."""
    characters = 8 * len(prompt.turns)
    for turn in prompt.turns:
        characters += len(turn.content)
        if turn.calls:
            characters += sum(len(call.name) + len(call.arguments) + 8 for call in turn.calls)
    characters += sum(len(json.dumps(tool.parameters)) + 16 for tool in prompt.tools)
    return characters // CHARACTERS_PER_TOKEN + 1
