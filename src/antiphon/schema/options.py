"""The nested options of a request that are echoed in the response: text and reasoning.

Decides their shapes, as requested and as echoed.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import Discriminator, Field, Tag, model_validator

from antiphon.schema.base import Wire, absent, kind_of


class TextFormat(Wire):
    """Plain text."""

    type: Literal["text"] = "text"


class JsonObjectFormat(Wire):
    """Any JSON object."""

    type: Literal["json_object"] = "json_object"


class JsonSchemaFormat(Wire):
    """JSON of a schema. The nested form of chat completions is read as well.

    It is enforced whether `strict` or not; echoed, `strict` is never null.
    """

    type: Literal["json_schema"] = "json_schema"
    name: str = Field(min_length=1, max_length=64, pattern=r"^[a-zA-Z0-9_-]+$")
    description: str | None = None
    schema_: dict[str, Any] = Field(alias="schema")
    strict: bool = False

    @model_validator(mode="before")
    @classmethod
    def _read(cls, value: Any) -> Any:
        if isinstance(value, dict) and isinstance(value.get("json_schema"), dict):
            value = {"type": "json_schema", **value["json_schema"]}
        if isinstance(value, dict) and value.get("strict", ...) is None:
            return {key: inner for key, inner in value.items() if key != "strict"}
        return value


def _format(value: Any) -> str | None:
    kind = kind_of(value)
    return f"~{kind}" if kind in ("text", "json_object", "json_schema") else None


Format = Annotated[
    Annotated[TextFormat, Tag("~text")]
    | Annotated[JsonObjectFormat, Tag("~json_object")]
    | Annotated[JsonSchemaFormat, Tag("~json_schema")],
    Discriminator(
        _format,
        custom_error_type="format",
        custom_error_message="must be an object of type 'text', 'json_object' or 'json_schema'",
    ),
]


class Text(Wire):
    """`text` of request and response; `verbosity` is echoed."""

    format: Format = Field(default_factory=TextFormat)
    verbosity: Literal["low", "medium", "high"] | None = absent()

    @model_validator(mode="before")
    @classmethod
    def _null_format(cls, value: Any) -> Any:
        if isinstance(value, dict) and value.get("format", ...) is None:
            return {key: inner for key, inner in value.items() if key != "format"}
        return value


class ReasoningOptions(Wire):
    """`reasoning` of request and response: both keys are always echoed."""

    effort: Literal["none", "minimal", "low", "medium", "high", "xhigh", "max"] | None = None
    summary: Literal["auto", "concise", "detailed"] | None = None
