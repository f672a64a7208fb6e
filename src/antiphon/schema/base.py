"""What every wire model shares: strict reading, frozen values, null versus absent.

Decides how unknown keys (ignored) and nulls are treated. Knows no concrete object.
"""

from __future__ import annotations

from typing import Any

from pydantic import BaseModel, ConfigDict, FailFast, Field


class Wire(BaseModel):
    """Base of all wire models. Values are read strictly: `"1"` is not a number."""

    model_config = ConfigDict(
        strict=True,
        frozen=True,
        extra="ignore",
        serialize_by_alias=True,
        allow_inf_nan=False,
        protected_namespaces=(),
    )

    def encode(self) -> bytes:
        """The JSON of this object, UTF-8, without spaces."""
        return self.__pydantic_serializer__.to_json(self)


def _is_none(value: Any) -> bool:
    return value is None


def absent(**constraints: Any) -> Any:
    """A field that is left out of the JSON when it is None (optional, but not nullable)."""
    return Field(default=None, exclude_if=_is_none, **constraints)


def kind_of(value: Any) -> Any:
    """The `type` of an object, as JSON or as a model; None where there is none."""
    if isinstance(value, dict):
        return value.get("type")
    return getattr(value, "type", None)


class FirstFault(FailFast):
    """Stop at the first bad element: a list of a million faults must not cost a million errors.

    pydantic's own marker cannot stand inside a union, for want of a hash.
    """

    __hash__ = object.__hash__
