"""The routes of `/v1/responses`: decode, ask the service, encode.

Decides nothing about responses; only which body, query and header goes where.
"""

from __future__ import annotations

import asyncio
import re
from dataclasses import dataclass
from typing import Any, TypeVar

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from antiphon.core.responses import Caller, ResponsesService
from antiphon.errors import InvalidRequest, NotSupported, ServerFailure
from antiphon.http.body import read_json
from antiphon.http.errors import json_answer
from antiphon.http.stream import EventStream, wait_or_leave
from antiphon.schema.base import Wire
from antiphon.schema.decode import decode, decode_query, load
from antiphon.schema.requests import CreateBody, InputTokensBody, PageQuery
from antiphon.schema.response import DeletedResponse, InputTokens

IGNORED = "Antiphon-Ignored"
BIG_BODY = 262_144
_MISTAKEN = {"messages": "input", "response_format": "text.format"}
_RESERVED = ("compact", "input_tokens")
_Body = TypeVar("_Body", bound=InputTokensBody)
_NAME = re.compile(r"[A-Za-z0-9_.\-]{1,64}")


@dataclass(frozen=True, slots=True)
class ResponsesRoutes:
    """The seven routes. `max_body` is in bytes, `keep_alive` in seconds."""

    service: ResponsesService
    max_body: int
    keep_alive: float

    def routes(self) -> list[Route]:
        """Fixed words come first, so that they are never read as ids (E14)."""
        return [
            Route("/responses", self.create, methods=["POST"]),
            Route("/responses/compact", self.compact, methods=["POST"]),
            Route("/responses/input_tokens", self.input_tokens, methods=["POST"]),
            Route("/responses/{id}", self.one, methods=["GET", "DELETE"]),
            Route("/responses/{id}/cancel", self.cancel, methods=["POST"]),
            Route("/responses/{id}/input_items", self.input_items, methods=["GET"]),
        ]

    async def create(self, request: Request) -> Response:
        """E1."""
        body, ignored = await self._body(request, CreateBody)
        run = await self.service.create(body, caller(request))
        headers = {IGNORED: ", ".join(ignored + run.ignored)} if ignored or run.ignored else {}
        if body.stream:
            return EventStream(
                run,
                headers,
                interval=self.keep_alive,
                keep_alive=self.service.policy.keep_alive,
            )
        if not await wait_or_leave(run, request):
            return Response(status_code=499)
        response = run.response
        if response.status == "failed":
            assert response.error is not None
            raise ServerFailure(response.error.message, code=response.error.code, headers=headers)
        return json_answer(response.encode(), headers=headers)

    async def one(self, request: Request) -> Response:
        """E2 and E3."""
        id = request.path_params["id"]
        if id in _RESERVED:
            raise HTTPException(405, headers={"Allow": "POST"})
        if request.method == "DELETE":
            await self.service.delete(id, caller(request))
            return json_answer(DeletedResponse(id=id).encode())
        body = await self.service.retrieve(id, caller(request))
        stream = request.query_params.get("stream", "false").lower()
        if stream not in ("true", "1", "false", "0", ""):
            raise InvalidRequest("Invalid 'stream': must be true or false", param="stream")
        if stream in ("true", "1"):
            raise NotSupported(
                "This response cannot be streamed because it was not created with background=true.",
                param="stream",
            )
        return json_answer(body)

    async def cancel(self, request: Request) -> Response:
        """E4."""
        return json_answer(await self.service.cancel(_id(request), caller(request)))

    async def input_items(self, request: Request) -> Response:
        """E5."""
        query = decode_query(PageQuery, dict(request.query_params))
        page = await self.service.input_items(_id(request), query, caller(request))
        return json_answer(page.encode())

    async def input_tokens(self, request: Request) -> Response:
        """E7."""
        body, ignored = await self._body(request, InputTokensBody)
        count = await self.service.count(body, caller(request))
        headers = {IGNORED: ", ".join(ignored)} if ignored else {}
        return json_answer(InputTokens(input_tokens=count).encode(), headers=headers)

    async def compact(self, request: Request) -> Response:
        """E6."""
        raise NotSupported("Compaction is not supported yet.")

    async def _body(self, request: Request, model: type[_Body]) -> tuple[_Body, list[str]]:
        """The typed body, and the names of the fields that are ignored."""
        body = await read_json(request, self.max_body)
        if len(body) <= BIG_BODY:
            return _typed(body, model)
        # A large body would hold up every stream while it is read.
        return await asyncio.to_thread(_typed, body, model)


def _typed(body: bytes, model: type[_Body]) -> tuple[_Body, list[str]]:
    raw = load(body)
    for field, right in _MISTAKEN.items():
        if raw.get(field) is not None:
            raise InvalidRequest(
                f"'{field}' belongs to chat completions; use '{right}'.", param=field
            )
    return decode(model, raw), unknown_fields(raw, CreateBody)


def _id(request: Request) -> str:
    """The id in the path. Words that are paths of their own are never ids (E14)."""
    id: str = request.path_params["id"]
    if id in _RESERVED:
        raise HTTPException(404)
    return id


def caller(request: Request) -> Caller:
    """Who asks."""
    return Caller(
        owner=request.scope["owner"],
        request_id=request.scope["request_id"],
        open_responses="openresponses-version" in request.headers,
    )


def unknown_fields(raw: dict[str, Any], model: type[Wire]) -> list[str]:
    """Top-level fields that mean nothing here, in a form that fits into a header (C21)."""
    names = [name for name in raw if name not in model.model_fields and raw[name] is not None]
    shown = [name if _NAME.fullmatch(name) else "(unprintable)" for name in names[:20]]
    return shown if len(names) <= 20 else [*shown, f"and {len(names) - 20} more"]
