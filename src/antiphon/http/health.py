"""`/health` and `/ready` (contract E10): is the process there, does the engine take requests."""

from __future__ import annotations

from dataclasses import dataclass

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from antiphon import __version__
from antiphon.core.models import ModelsService
from antiphon.http.errors import json_answer
from antiphon.schema.response import Health

PUBLIC = ("/health", "/ready")


@dataclass(frozen=True, slots=True)
class HealthRoutes:
    """Both routes are public: they tell nothing but yes or no."""

    service: ModelsService

    def routes(self) -> list[Route]:
        """The two routes."""
        return [
            Route("/health", self.health, methods=["GET"]),
            Route("/ready", self.ready, methods=["GET"]),
        ]

    async def health(self, request: Request) -> Response:
        """200 as long as the process answers."""
        return json_answer(Health(status="ok", version=__version__).encode())

    async def ready(self, request: Request) -> Response:
        """200 when the engine takes requests, else 503."""
        if self.service.ready:
            return json_answer(Health(status="ready").encode())
        return json_answer(Health(status="loading").encode(), 503, {"Retry-After": "1"})
