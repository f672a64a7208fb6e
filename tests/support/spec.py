"""The published Open Responses schema as a judge of what we send.

The schema file lies beside the project. Where it is missing the judge says nothing, and the
test that needs it is skipped with that reason.
"""

from __future__ import annotations

import copy
import functools
import json
from pathlib import Path
from typing import Any

import jsonschema
from jsonschema.protocols import Validator

SHARED = Path(__file__).parents[2].parent / "shared"
FILE = SHARED / "spec" / "openresponses-openapi.json"

# The two known faults of that file: it types the echo of a JSON schema as null, and it names
# reasoning events as no client does.
REASONING_NAMES = {
    "response.reasoning_text.delta": "response.reasoning.delta",
    "response.reasoning_text.done": "response.reasoning.done",
}


def available() -> bool:
    """Whether the schema file is there."""
    return FILE.exists()


@functools.cache
def _document() -> dict[str, Any]:
    document: dict[str, Any] = json.loads(FILE.read_text("utf-8"))
    echo = document["components"]["schemas"]["JsonSchemaResponseFormat"]["properties"]["schema"]
    echo.clear()
    return document


@functools.cache
def _validator(name: str) -> Validator:
    document = _document()
    return jsonschema.Draft202012Validator(
        {"$ref": f"#/components/schemas/{name}", "components": document["components"]}
    )


@functools.cache
def _event_schemas() -> dict[str, str]:
    names: dict[str, str] = {}
    for name, schema in _document()["components"]["schemas"].items():
        kind = schema.get("properties", {}).get("type", {})
        values = kind.get("enum", [kind.get("const")])
        if name.endswith("StreamingEvent") and values[0]:
            names[values[0]] = name
    return names


def check(name: str, value: Any) -> None:
    """Validate a value against a named schema."""
    if available():
        _validator(name).validate(value)


def check_event(event: dict[str, Any]) -> None:
    """Validate a stream event against the schema of its type."""
    if not available():
        return
    event = copy.deepcopy(event)
    event["type"] = REASONING_NAMES.get(event["type"], event["type"])
    check(_event_schemas()[event["type"]], event)
