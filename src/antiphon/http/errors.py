"""Errors as HTTP answers: the only place that writes the envelope.

Decides what a client sees of an exception that nobody expected: a generic message and the
request id, never a traceback.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response

from antiphon.errors import (
    ApiError,
    InvalidRequest,
    MethodNotAllowed,
    NotFound,
    ServerFailure,
    UpgradeRequired,
)
from antiphon.schema.decode import DecodeError
from antiphon.schema.error import ErrorBody, ErrorEnvelope

log = logging.getLogger("antiphon.http")


def json_answer(
    body: bytes, status: int = 200, headers: Mapping[str, str] | None = None
) -> Response:
    """An answer whose body is JSON already."""
    return Response(body, status, headers, media_type="application/json")


def error_answer(error: ApiError) -> Response:
    """The envelope of an error."""
    body = ErrorBody(message=error.message, type=error.type, param=error.param, code=error.code)
    return json_answer(ErrorEnvelope(error=body).encode(), error.status, error.headers)


async def on_api_error(request: Request, error: Exception) -> Response:
    """An error that was raised on purpose."""
    assert isinstance(error, ApiError)
    return error_answer(error)


async def on_decode_error(request: Request, error: Exception) -> Response:
    """A body or query that is at fault."""
    assert isinstance(error, DecodeError)
    return error_answer(InvalidRequest(error.message, param=error.param))


async def on_http_error(request: Request, error: Exception) -> Response:
    """No such path, or no such method (E15)."""
    assert isinstance(error, HTTPException)
    path = request.url.path[:200]
    if error.status_code == 404:
        return error_answer(NotFound(f"No such path: {path}"))
    if request.headers.get("upgrade", "").lower() == "websocket":
        return error_answer(
            UpgradeRequired(
                "The WebSocket transport is not enabled; use HTTP.",
                headers={"Upgrade": "HTTP/1.1", "Connection": "Upgrade, close"},
            )
        )
    allow = (error.headers or {}).get("Allow", "")
    return error_answer(
        MethodNotAllowed(
            f"{request.method[:20]} is not allowed on {path}; allowed: {allow}.",
            headers={"Allow": allow},
        )
    )


async def on_crash(request: Request, error: Exception) -> Response:
    """Anything else is our fault."""
    log.error("request %s crashed", request.scope.get("request_id"), exc_info=error)
    return error_answer(ServerFailure("The server failed; see its log under the request id."))
