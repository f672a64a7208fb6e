"""Bytes to a typed request, or the first fault with the path of its field.

Decides what counts as JSON (contract C23) and how a fault is named (`input[0].content[1]`,
C22). Knows no HTTP: the fault is a plain exception that `http` turns into an answer.
"""

from __future__ import annotations

import math
from typing import Any, TypeVar

import jiter
from pydantic import ValidationError

from antiphon.schema.base import Wire

MAX_DEPTH = 128
MAX_ECHO = 200

Model = TypeVar("Model", bound=Wire)


class DecodeError(Exception):
    """The first fault of a body; `param` is None where the body as a whole is at fault."""

    def __init__(self, message: str, param: str | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.param = param


def load(body: bytes) -> dict[str, Any]:
    """Parse a JSON object.

    Raises:
        DecodeError: not JSON, NaN or Infinity, a repeated key, invalid UTF-8, a lone
            surrogate, more than 128 levels, or not an object.
    """
    try:
        value = jiter.from_json(body, allow_inf_nan=False, catch_duplicate_keys=True)
    except ValueError as error:
        raise DecodeError(f"The body is not valid JSON: {_short(str(error))}") from None
    if not isinstance(value, dict):
        raise DecodeError("The body must be a JSON object.")
    _check_values(value)
    return value


def decode(model: type[Model], value: dict[str, Any]) -> Model:
    """Validate a parsed body.

    Raises:
        DecodeError: with the path of the first bad field.
    """
    try:
        return model.model_validate(value)
    except ValidationError as error:
        raise _fault(error) from None


def decode_query(model: type[Model], query: dict[str, str]) -> Model:
    """Validate query parameters, whose values are strings.

    Raises:
        DecodeError: with the name of the first bad parameter.
    """
    try:
        return model.model_validate_strings(query)
    except ValidationError as error:
        raise _fault(error) from None


def _check_values(root: dict[str, Any]) -> None:
    level: list[Any] = [root]
    for _ in range(MAX_DEPTH):
        deeper: list[Any] = []
        for value in level:
            for inner in value.values() if isinstance(value, dict) else value:
                if isinstance(inner, dict | list):
                    deeper.append(inner)
                elif isinstance(inner, float) and not math.isfinite(inner):
                    raise DecodeError("The body is not valid JSON: a number is out of range")
        if not deeper:
            return
        level = deeper
    raise DecodeError(f"The body is nested deeper than {MAX_DEPTH} levels.")


def _fault(error: ValidationError) -> DecodeError:
    first = error.errors(include_url=False)[0]
    param = _path(first["loc"])
    kind, value = first["type"], first["input"]
    if kind == "missing":
        return DecodeError(f"Missing required field '{param}'", param)
    elif kind in ("unknown_item", "unknown_part", "tool"):
        text = _unknown(kind, value)
    elif kind == "value_error":
        text = str(first["ctx"]["error"])
    else:
        text = first["msg"]
        text = text[0].lower() + text[1:]
    where = f"Invalid '{param}'" if param else "Invalid body"
    return DecodeError(f"{where}: {_short(text)}", param)


def _unknown(kind: str, value: Any) -> str:
    noun = {"unknown_item": "item", "unknown_part": "content part", "tool": "tool"}[kind]
    if not isinstance(value, dict):
        return f"an {noun} must be an object" if noun == "item" else f"a {noun} must be an object"
    found = value.get("type")
    if found is None:
        return f"the {noun} has no type"
    if not isinstance(found, str):
        return f"the type of the {noun} must be a string"
    return f"unknown {noun} type '{_short(found, 64)}'"


def _path(location: tuple[int | str, ...]) -> str | None:
    """Branch labels of unions start with `~` and are no part of the path."""
    path = ""
    for step in location:
        if isinstance(step, int):
            path += f"[{step}]"
        elif step == "[key]":
            continue
        elif not step.startswith("~"):
            path += f".{step}" if path else step
    return _short(path) or None


def _short(text: str, limit: int = MAX_ECHO) -> str:
    return text if len(text) <= limit else text[:limit] + "…"
