"""Model names and the engines that serve them.

Decides what a `model` of a request means: an id, a further name of the model, an alias, or
`default`. Knows no engine by name.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from antiphon.engine.protocol import Engine
from antiphon.engine.types import Capabilities, ModelInfo

DEFAULT = "default"


@dataclass(frozen=True, slots=True)
class Served:
    """A model together with the engine that serves it."""

    info: ModelInfo
    engine: Engine
    aliases: tuple[str, ...] = ()

    @property
    def capabilities(self) -> Capabilities:
        """What the model can do."""
        return self.engine.capabilities(self.info.id)


class Registry:
    """The models of all engines; the first model is the default. Aliases are the default's."""

    def __init__(self, engines: Sequence[Engine], aliases: Sequence[str] = ()) -> None:
        self._engines = tuple(engines)
        self._aliases = tuple(aliases)

    @property
    def ready(self) -> bool:
        """Whether every engine takes requests."""
        return all(engine.ready for engine in self._engines)

    def models(self) -> list[Served]:
        """Every model, the default first."""
        found: list[Served] = []
        for engine in self._engines:
            for info in engine.models():
                found.append(Served(info, engine, () if found else self._aliases))
        return found

    def find(self, name: str) -> Served | None:
        """The model that a request means by this name."""
        models = self.models()
        for served in models:
            if name in (served.info.id, *served.info.names, *served.aliases):
                return served
        return models[0] if models and name == DEFAULT else None

    def default(self) -> Served | None:
        """The model for requests that name an unknown one, where the policy allows that."""
        models = self.models()
        return models[0] if models else None

    async def close(self) -> None:
        """Close every engine."""
        for engine in self._engines:
            await engine.close()
