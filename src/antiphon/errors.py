"""Every error that a client can see, and the only place that pairs status, type and code.

    ApiError
    ├── InvalidRequest           400  invalid_request_error
    │   ├── NotSupported         400  … code unsupported_feature: understood, but not served
    │   └── ContextLengthExceeded 400 … code context_length_exceeded
    ├── AuthenticationFailed     401  authentication_error, code invalid_api_key
    ├── NotFound                 404  invalid_request_error
    │   └── ModelNotFound        404  … code model_not_found, param model
    ├── MethodNotAllowed         405  invalid_request_error
    ├── BodyTooLarge             413  invalid_request_error, code request_too_large
    ├── UnsupportedMedia         415  invalid_request_error
    ├── UpgradeRequired          426  invalid_request_error
    ├── TooManyRequests          429  rate_limit_error, code rate_limit_exceeded
    ├── ServerFailure            500  server_error
    └── Overloaded               503  server_error, code server_overloaded

Errors are raised; `http.errors` writes them as JSON, `core.run` as `response.failed`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

MAX_MESSAGE = 1000


class ApiError(Exception):
    """An error with an HTTP status and the four fields of the envelope.

    `message` is shown to the client and cut at 1000 characters. `param` is the path of the
    field at fault (`input[0].content[1].image_url`). `headers` go into the HTTP answer.
    """

    status: ClassVar[int] = 500
    type: ClassVar[str] = "server_error"
    code: str | None = None

    def __init__(
        self,
        message: str,
        *,
        param: str | None = None,
        code: str | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> None:
        super().__init__(message)
        self.message = message if len(message) <= MAX_MESSAGE else message[:MAX_MESSAGE] + "…"
        self.param = param
        if code is not None:
            self.code = code
        self.headers: dict[str, str] = dict(headers or {})


class InvalidRequest(ApiError):
    """The request is at fault; `param` says where."""

    status = 400
    type = "invalid_request_error"


class NotSupported(InvalidRequest):
    """The field is understood, but this server (or this model) does not serve it."""

    code = "unsupported_feature"


class ContextLengthExceeded(InvalidRequest):
    """Prompt and answer do not fit the context window."""

    code = "context_length_exceeded"


class AuthenticationFailed(ApiError):
    """No key, or one that is not known."""

    status = 401
    type = "authentication_error"
    code = "invalid_api_key"


class NotFound(ApiError):
    """Unknown path or id; a foreign id looks exactly the same."""

    status = 404
    type = "invalid_request_error"


class ModelNotFound(NotFound):
    """The model is not served here."""

    code = "model_not_found"


class MethodNotAllowed(ApiError):
    """The path exists, the method does not; `Allow` is among the headers."""

    status = 405
    type = "invalid_request_error"


class BodyTooLarge(ApiError):
    """The body, as sent or as decoded, is over the limit."""

    status = 413
    type = "invalid_request_error"
    code = "request_too_large"


class UnsupportedMedia(ApiError):
    """Content type or content encoding that is not taken."""

    status = 415
    type = "invalid_request_error"


class UpgradeRequired(ApiError):
    """A WebSocket upgrade where the transport is switched off."""

    status = 426
    type = "invalid_request_error"


class TooManyRequests(ApiError):
    """The caller must slow down; `Retry-After` is among the headers."""

    status = 429
    type = "rate_limit_error"
    code = "rate_limit_exceeded"


class ServerFailure(ApiError):
    """The generation failed; the details are in the log under the request id."""

    status = 500
    type = "server_error"
    code = "server_error"


class Overloaded(ApiError):
    """No slot and no room in the queue, or the engine is away; `Retry-After` is set."""

    status = 503
    type = "server_error"
    code = "server_overloaded"
