"""Content parts of messages, reasoning and tool outputs.

Decides which parts exist and which keys they carry. A part that we send is accepted back
unchanged (contract I2).
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import Discriminator, Field, Tag, model_validator

from antiphon.schema.base import FirstFault, Wire, absent, kind_of


class TopLogprob(Wire):
    """An alternative token at one position."""

    token: str
    logprob: float
    bytes: list[int] = Field(default_factory=list)


class Logprob(TopLogprob):
    """The token that was chosen, with its alternatives."""

    top_logprobs: list[TopLogprob] = Field(default_factory=list)


class InputText(Wire):
    """Text from the client. The chat spelling `text` is read as well."""

    type: Literal["input_text"] = "input_text"
    text: str

    @model_validator(mode="before")
    @classmethod
    def _chat_spelling(cls, value: Any) -> Any:
        if isinstance(value, dict) and value.get("type") == "text":
            return {**value, "type": "input_text"}
        return value


class InputImage(Wire):
    """An image by URL or data URL."""

    type: Literal["input_image"] = "input_image"
    image_url: str | None = None
    detail: Literal["auto", "low", "high", "original"] | None = "auto"
    file_id: str | None = absent()


class InputFile(Wire):
    """A file given as data, URL or id."""

    type: Literal["input_file"] = "input_file"
    filename: str | None = absent()
    file_data: str | None = absent()
    file_url: str | None = absent()
    file_id: str | None = absent()


class OutputText(Wire):
    """Text of the model. `logprobs` is absent in replayed input that had none."""

    type: Literal["output_text"] = "output_text"
    text: str
    annotations: list[dict[str, Any]] = Field(default_factory=list)
    logprobs: list[Logprob] | None = absent()

    @model_validator(mode="before")
    @classmethod
    def _null_annotations(cls, value: Any) -> Any:
        if isinstance(value, dict) and value.get("annotations", ...) is None:
            return {**value, "annotations": []}
        return value


class Refusal(Wire):
    """The model's refusal."""

    type: Literal["refusal"] = "refusal"
    refusal: str


class SummaryText(Wire):
    """One paragraph of a reasoning summary."""

    type: Literal["summary_text"] = "summary_text"
    text: str


class ReasoningText(Wire):
    """A piece of a raw reasoning trace."""

    type: Literal["reasoning_text"] = "reasoning_text"
    text: str


PARTS = ("input_text", "input_image", "input_file", "output_text", "refusal")


def _part(value: Any) -> str | None:
    kind = kind_of(value)
    if kind == "text":
        kind = "input_text"
    return f"~{kind}" if kind in PARTS else None


Part = Annotated[
    Annotated[InputText, Tag("~input_text")]
    | Annotated[InputImage, Tag("~input_image")]
    | Annotated[InputFile, Tag("~input_file")]
    | Annotated[OutputText, Tag("~output_text")]
    | Annotated[Refusal, Tag("~refusal")],
    Discriminator(
        _part, custom_error_type="unknown_part", custom_error_message="not a content part"
    ),
]
Parts = Annotated[list[Part], FirstFault()]


def _text_or_parts(value: Any) -> str | None:
    if isinstance(value, str):
        return "~text"
    return "~parts" if isinstance(value, list) else None


TextOrParts = Annotated[
    Annotated[str, Tag("~text")] | Annotated[Parts, Tag("~parts")],
    Discriminator(
        _text_or_parts,
        custom_error_type="text_or_parts",
        custom_error_message="must be a string or a list of content parts",
    ),
]
