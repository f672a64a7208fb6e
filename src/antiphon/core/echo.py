"""Reasoning echo: the trace of an answer, remembered for when the answer comes back without it.

Decides contract R6. A trace is found again only for the same model, template variables and
tools and with the same turns before it, and it goes into the rendered prompt only, so that
the turn renders as it was generated and the engine's prompt cache still matches.
"""

from __future__ import annotations

import hashlib
import json
from collections import OrderedDict
from collections.abc import Iterator
from dataclasses import asdict, replace

from antiphon.engine.types import Prompt, Turn

MAX_ENTRIES = 4096
OVERHEAD = 96


class ReasoningEcho:
    """Traces by what came before them; least recently used first out. `limit` is in bytes."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._traces: OrderedDict[bytes, str] = OrderedDict()
        self._bytes = 0

    def restore(self, prompt: Prompt, owner: str) -> Prompt:
        """The prompt with every trace that is known put back."""
        if not self._traces:
            return prompt
        turns = tuple(
            replace(turn, reasoning=trace)
            if (trace := self._known(turn, key)) is not None
            else turn
            for turn, key in zip(prompt.turns, _keys(prompt, owner), strict=False)
        )
        return replace(prompt, turns=turns) if turns != prompt.turns else prompt

    def remember(self, prompt: Prompt, owner: str, content: str, reasoning: str) -> None:
        """Keep the trace of an ordinary answer to this prompt."""
        size = len(reasoning.encode()) + OVERHEAD
        if not reasoning.strip() or size * 8 > self._limit:
            return
        answered = replace(prompt, turns=(*prompt.turns, Turn("assistant", content)))
        *_, key = _keys(answered, owner)
        self._forget(key)
        self._traces[key] = reasoning
        self._bytes += size
        while self._bytes > self._limit or len(self._traces) > MAX_ENTRIES:
            self._forget(next(iter(self._traces)))

    def _known(self, turn: Turn, key: bytes) -> str | None:
        if turn.role != "assistant" or turn.reasoning or turn.calls or key not in self._traces:
            return None
        self._traces.move_to_end(key)
        return self._traces[key]

    def _forget(self, key: bytes) -> None:
        trace = self._traces.pop(key, None)
        if trace is not None:
            self._bytes -= len(trace.encode()) + OVERHEAD


def _keys(prompt: Prompt, owner: str) -> Iterator[bytes]:
    """For every turn the digest of everything up to and with it, traces left out."""
    head = [
        owner,
        prompt.model,
        sorted((name, repr(value)) for name, value in prompt.template_variables.items()),
        [asdict(tool) for tool in prompt.tools],
    ]
    digest = hashlib.blake2b(json.dumps(head, sort_keys=True, default=repr).encode())
    for turn in prompt.turns:
        calls = [[call.name, call.arguments] for call in turn.calls]
        parts = [turn.role, turn.content.strip(), calls, turn.call_id]
        digest.update(json.dumps(parts).encode())
        yield digest.digest()
