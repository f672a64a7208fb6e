"""The error envelope of every failed request."""

from __future__ import annotations

from antiphon.schema.base import Wire


class ErrorBody(Wire):
    """The four fields of an error, null where they do not apply."""

    message: str
    type: str
    param: str | None = None
    code: str | None = None


class ErrorEnvelope(Wire):
    """`{"error": {...}}`."""

    error: ErrorBody
