"""What the API tells about models. Decides nothing: the registry knows."""

from __future__ import annotations

from dataclasses import asdict

from antiphon.engine.registry import Registry, Served
from antiphon.errors import ModelNotFound
from antiphon.schema.response import Model, ModelList


class ModelsService:
    """Lists the models of a registry."""

    def __init__(self, registry: Registry) -> None:
        self._registry = registry

    @property
    def ready(self) -> bool:
        """Whether requests would be taken now."""
        return self._registry.ready

    def list(self) -> ModelList:
        """Every model, the default first."""
        return ModelList(data=[_model(served) for served in self._registry.models()])

    def get(self, name: str) -> Model:
        """One model by id, alias or other name. Raises ModelNotFound."""
        served = self._registry.find(name)
        if served is None:
            raise ModelNotFound(f"The model '{name[:80]}' does not exist.", param="model")
        return _model(served)


def _model(served: Served) -> Model:
    info = served.info
    return Model(
        id=info.id,
        created=info.created,
        owned_by=info.owned_by,
        context_window=info.context_window,
        aliases=list(served.aliases),
        capabilities=asdict(served.capabilities),
    )
