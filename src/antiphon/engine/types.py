"""The engine's vocabulary: a `Prompt` goes in, `Delta`s come out.

Decides how a conversation and its answer look to whatever generates. It knows neither the
wire (no response, no event) nor raw model text (no `<think>`, no chat template). All values
are frozen, so an engine may keep or hash them, and every text is complete Unicode.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

Role = Literal["system", "developer", "user", "assistant", "tool"]


@dataclass(frozen=True, slots=True)
class ToolCall:
    """A call that the model made in an earlier turn; `arguments` is its JSON text as sent."""

    call_id: str
    name: str
    arguments: str


@dataclass(frozen=True, slots=True)
class Turn:
    """One turn of the conversation.

    `calls` and `reasoning` belong to assistant turns. `call_id` and `name` belong to tool
    turns and name the call that `content` answers.
    """

    role: Role
    content: str = ""
    reasoning: str = ""
    calls: tuple[ToolCall, ...] = ()
    call_id: str = ""
    name: str = ""


@dataclass(frozen=True, slots=True)
class Grammar:
    """A grammar of the client for free text."""

    syntax: Literal["lark", "regex"]
    definition: str


@dataclass(frozen=True, slots=True)
class ToolSpec:
    """A function that the model may call; `parameters` is a JSON schema or None.

    A `raw` tool takes free text, of a `grammar` if there is one. Its calls come with one
    argument, `input`.
    """

    name: str
    description: str | None = None
    parameters: Mapping[str, Any] | None = None
    strict: bool | None = None
    raw: bool = False
    grammar: Grammar | None = None


@dataclass(frozen=True, slots=True)
class ToolChoice:
    """What may be called: nothing with `none`, at least one call with `required`.

    `names` limits calls to these of the declared tools; the others stay visible. `most` is
    the largest number of calls in one answer.
    """

    mode: Literal["auto", "none", "required"] = "auto"
    names: tuple[str, ...] | None = None
    most: int | None = None


@dataclass(frozen=True, slots=True)
class JsonOutput:
    """The visible answer must be one JSON document of this schema; None means any object."""

    schema: Mapping[str, Any] | None = None


@dataclass(frozen=True, slots=True)
class Sampling:
    """How tokens are drawn. None means the engine's own default.

    `max_tokens` counts every generated token. `logprobs` is the number of alternatives
    wanted per token: 0 asks for the chosen token's only, None for no log-probabilities.
    """

    temperature: float = 1.0
    top_p: float = 1.0
    top_k: int | None = None
    min_p: float | None = None
    presence_penalty: float = 0.0
    frequency_penalty: float = 0.0
    repetition_penalty: float | None = None
    seed: int | None = None
    stop: tuple[str, ...] = ()
    max_tokens: int | None = None
    logprobs: int | None = None


@dataclass(frozen=True, slots=True)
class Prompt:
    """Everything that decides one generation.

    `model` is an id from `Engine.models()`. `output` constrains the visible answer.
    `constraint` is a Lark grammar in llguidance's dialect which the whole raw output must
    match, instead of the one that `choice` and `output` ask for. `cache_key` groups requests
    that are likely to share a prefix; it never changes the answer.
    """

    model: str
    turns: tuple[Turn, ...]
    tools: tuple[ToolSpec, ...] = ()
    choice: ToolChoice = field(default_factory=ToolChoice)
    output: JsonOutput | None = None
    sampling: Sampling = field(default_factory=Sampling)
    constraint: str | None = None
    template_variables: Mapping[str, Any] = field(default_factory=dict)
    cache_key: str | None = None


@dataclass(frozen=True, slots=True)
class Prepared:
    """A prompt that the engine has rendered and counted.

    `input_tokens` is exactly what the engine will prefill. `payload` is the engine's own
    (rendered text, token ids, …) and means nothing to anybody else.
    """

    prompt: Prompt
    input_tokens: int
    payload: Any = None


@dataclass(frozen=True, slots=True)
class TokenLogprob:
    """One token with its natural-log probability and the likeliest alternatives."""

    token: str
    logprob: float
    bytes: tuple[int, ...]
    top: tuple[TokenLogprob, ...] = ()


@dataclass(frozen=True, slots=True)
class Prefill:
    """The engine has begun to work on the prompt. Sent once, before anything else."""


@dataclass(frozen=True, slots=True)
class Text:
    """A piece of the visible answer: no markup, no half character.

    `logprobs` are those of the tokens that this piece consists of.
    """

    text: str
    logprobs: tuple[TokenLogprob, ...] = ()


@dataclass(frozen=True, slots=True)
class Reasoning:
    """A piece of the model's reasoning trace."""

    text: str


@dataclass(frozen=True, slots=True)
class CallStart:
    """A function call begins. `call_id` is None where the engine has no id of its own."""

    name: str
    call_id: str | None = None


@dataclass(frozen=True, slots=True)
class CallArguments:
    """The next piece of the JSON text of the call that began last."""

    text: str


@dataclass(frozen=True, slots=True)
class CallEnd:
    """The call that began last is over. Not `complete`: its arguments are broken off.

    An engine may leave this out; the next delta of another kind ends a call as well.
    """

    complete: bool = True


@dataclass(frozen=True, slots=True)
class Usage:
    """Token counts of the whole generation; `cached_tokens` are part of `input_tokens`."""

    input_tokens: int
    output_tokens: int
    cached_tokens: int = 0
    reasoning_tokens: int = 0


@dataclass(frozen=True, slots=True)
class Finish:
    """The last delta of a generation that was not cancelled and did not fail."""

    reason: Literal["stop", "length"]


Delta = Prefill | Text | Reasoning | CallStart | CallArguments | CallEnd | Usage | Finish


@dataclass(frozen=True, slots=True)
class Capabilities:
    """What an engine can do for one model. What is False is refused before generation."""

    tools: bool = False
    constraints: bool = False
    logprobs: bool = False
    images: bool = False


@dataclass(frozen=True, slots=True)
class ModelInfo:
    """A model that an engine serves.

    `context_window` is the number of tokens that prompt and answer share. `names` are
    further names (a path, for example) which mean the same model. `created` is a Unix time.
    """

    id: str
    context_window: int
    created: int
    names: tuple[str, ...] = ()
    owned_by: str = "antiphon"
