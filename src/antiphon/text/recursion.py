"""Schemas that no finite value fits, because they need themselves without an end.

Decides contract T7's "recursion with a base case": the compiler of grammars takes such a
schema, and a model would then go on until its limit. Knows no other fault of a schema.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any
from urllib.parse import unquote


def bottomless(schema: Any) -> bool:
    """Whether every value of the schema would have to be infinite.

    References within the schema (`#…`) are followed; others count as fine.
    """
    open_ = {ref for ref in _references(schema) if ref.startswith("#")}
    while found := {ref for ref in open_ if _ends(_target(schema, ref), open_)}:
        open_ -= found
    return not _ends(schema, open_)


def _ends(schema: Any, open_: set[str]) -> bool:
    """Whether a finite value may fit, if none fits the `open_` references."""
    if not isinstance(schema, Mapping):
        return True
    if schema.get("$ref") in open_:
        return False
    if not all(_ends(each, open_) for each in _list(schema, "allOf")):
        return False
    for key in ("anyOf", "oneOf"):
        options = _list(schema, key)
        if options and not any(_ends(each, open_) for each in options):
            return False
    return all(_ends(each, open_) for each in _needed(schema))


def _needed(schema: Mapping[str, Any]) -> Iterator[Any]:
    """The schemas of what every value must contain."""
    kind = schema.get("type")
    properties = schema.get("properties")
    if kind in ("object", ["object"]) and isinstance(properties, Mapping):
        yield from (properties.get(str(name)) for name in _list(schema, "required"))
    least = schema.get("minItems")
    if kind in ("array", ["array"]) and isinstance(least, int):
        first = _list(schema, "prefixItems")
        yield from first[:least]
        if least > len(first):
            yield schema.get("items")


def _list(schema: Mapping[str, Any], key: str) -> list[Any]:
    value = schema.get(key)
    return value if isinstance(value, list) else []


def _references(schema: Any) -> Iterator[str]:
    if isinstance(schema, Mapping):
        if isinstance(schema.get("$ref"), str):
            yield schema["$ref"]
        for value in schema.values():
            yield from _references(value)
    elif isinstance(schema, list):
        for value in schema:
            yield from _references(value)


def _target(schema: Any, ref: str) -> Any:
    """What a reference points to; None where there is nothing."""
    for key in ref[1:].split("/")[1:]:
        name = unquote(key).replace("~1", "/").replace("~0", "~")
        if isinstance(schema, Mapping):
            schema = schema.get(name)
        elif isinstance(schema, list) and name.isdecimal() and int(name) < len(schema):
            schema = schema[int(name)]
        else:
            return None
    return schema
