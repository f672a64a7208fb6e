"""What happens around every request: its id, its principal, its line in the log.

Decides contract O15 and that nothing is read of a request whose sender is unknown (G5).
Plain ASGI, since the wrapped answer may be a stream of hours.
"""

from __future__ import annotations

import logging
import re
import time
from collections.abc import Collection

from starlette.datastructures import Headers, MutableHeaders
from starlette.requests import ClientDisconnect, Request
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from antiphon.errors import ApiError
from antiphon.http.auth import Authenticator
from antiphon.http.errors import error_answer, on_crash
from antiphon.ids import Ids

log = logging.getLogger("antiphon.access")

_REQUEST_ID = re.compile(r"[A-Za-z0-9_.:-]{1,128}")


class RequestContext:
    """Sets `scope["request_id"]` and `scope["owner"]`; answers 401 itself.

    A client's own `X-Request-Id` is taken where it is harmless. `public` paths need no key.
    """

    def __init__(
        self, app: ASGIApp, *, authenticator: Authenticator, public: Collection[str], ids: Ids
    ) -> None:
        self._app = app
        self._authenticator = authenticator
        self._public = frozenset(public)
        self._ids = ids

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        headers = Headers(scope=scope)
        given = headers.get("x-request-id", "")
        request_id = given if _REQUEST_ID.fullmatch(given) else self._ids.new("req")
        scope["request_id"] = request_id
        status = 0
        began = time.monotonic()

        async def reply(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                MutableHeaders(scope=message)["x-request-id"] = request_id
            await send(message)

        try:
            if scope["path"] not in self._public:
                address = scope["client"][0] if scope.get("client") else ""
                scope["owner"] = self._authenticator.principal(headers, address)
            await self._app(scope, receive, reply)
        except ApiError as error:
            await error_answer(error)(scope, receive, reply)
        except ClientDisconnect:
            pass  # gone before its body was read: nobody to answer
        except Exception as error:
            # Starlette's handler of crashes stands outside and would answer without the id.
            if status:
                raise
            await (await on_crash(Request(scope), error))(scope, receive, reply)
        finally:
            log.info(
                "%s %s status=%s request=%s owner=%s ms=%d",
                scope["method"],
                scope["path"],
                status or "gone",
                request_id,
                scope.get("owner", "-"),
                (time.monotonic() - began) * 1000,
            )
