"""The contract of an engine. One suite (`tests/engines`) runs over every implementation."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from antiphon.engine.generation import Generation
from antiphon.engine.slots import Slots
from antiphon.engine.types import Capabilities, ModelInfo, Prepared, Prompt


class Engine(Protocol):
    """Whatever generates: an embedded model, an upstream server, an agent.

    An engine never queues: callers hold one of `slots` while they call `generate`.
    """

    @property
    def slots(self) -> Slots:
        """Admission to this engine: how many generations run at once, how many may wait."""
        ...

    @property
    def ready(self) -> bool:
        """Whether a request would be taken now."""
        ...

    def models(self) -> Sequence[ModelInfo]:
        """Every model that this engine serves; known only after `start`."""
        ...

    def capabilities(self, model: str) -> Capabilities:
        """What the model of this id can do."""
        ...

    async def start(self) -> None:
        """Load what must be loaded.

        Raises:
            EngineError: it cannot be loaded; the message is one line for the operator.
        """
        ...

    async def prepare(self, prompt: Prompt) -> Prepared:
        """Render and count a prompt without generating.

        Raises:
            PromptTooLong: no room is left for a single token of output.
            PromptRejected: the model's template refuses it.
            EngineUnavailable: the engine is away.
        """
        ...

    def generate(self, prepared: Prepared) -> Generation:
        """Start to generate what `prepare` returned.

        The deltas are `Prefill`, then content, then one `Usage`, then one `Finish`. A failure
        is raised to the reader as `EngineError`. After `cancel()` the engine stops within one
        token, and `stopped()` returns once it did.
        """
        ...

    async def close(self) -> None:
        """Stop everything and give back processes and connections. Idempotent."""
        ...
