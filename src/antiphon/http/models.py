"""The routes of `/v1/models` (contract E9)."""

from __future__ import annotations

from dataclasses import dataclass

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from antiphon.core.models import ModelsService
from antiphon.http.errors import json_answer


@dataclass(frozen=True, slots=True)
class ModelsRoutes:
    """List and read models. Ids may contain slashes."""

    service: ModelsService

    def routes(self) -> list[Route]:
        """The two routes."""
        return [
            Route("/models", self.all, methods=["GET"]),
            Route("/models/{id:path}", self.one, methods=["GET"]),
        ]

    async def all(self, request: Request) -> Response:
        """Every model."""
        return json_answer(self.service.list().encode())

    async def one(self, request: Request) -> Response:
        """One model by any of its names."""
        return json_answer(self.service.get(request.path_params["id"]).encode())
