"""A request and its transcript become one frozen `Prompt`.

Decides what of the request reaches the engine: instructions lead, tools in order, sampling as
given (contract C3, C13, C18). Knows no template and no store.
"""

from __future__ import annotations

from antiphon.core.transcript import Transcript
from antiphon.engine.types import Prompt, Sampling, ToolSpec, Turn
from antiphon.schema.requests import CreateBody, InputTokensBody
from antiphon.schema.tools import FunctionTool

LOGPROBS = "message.output_text.logprobs"


def build(model: str, body: InputTokensBody, transcript: Transcript, skip: int = 0) -> Prompt:
    """The prompt of a request to the engine's `model`, without the `skip` oldest entries."""
    turns = transcript.turns(skip)
    if body.instructions:
        turns = (Turn("system", body.instructions), *turns)
    return Prompt(
        model=model,
        turns=turns,
        tools=() if body.tool_choice == "none" else tuple(_specs(body)),
        sampling=_sampling(body) if isinstance(body, CreateBody) else Sampling(),
        template_variables=body.chat_template_kwargs,
        cache_key=_cache_key(body) if isinstance(body, CreateBody) else None,
    )


def _specs(body: InputTokensBody) -> list[ToolSpec]:
    return [
        ToolSpec(tool.name, tool.description, tool.parameters, tool.strict)
        for tool in body.tools
        if isinstance(tool, FunctionTool)
    ]


def _sampling(body: CreateBody) -> Sampling:
    wanted = LOGPROBS in body.include or body.top_logprobs > 0
    return Sampling(
        temperature=body.temperature,
        top_p=body.top_p,
        top_k=body.top_k,
        min_p=body.min_p,
        presence_penalty=body.presence_penalty,
        frequency_penalty=body.frequency_penalty,
        repetition_penalty=body.repetition_penalty,
        seed=body.seed,
        stop=tuple(body.stop),
        max_tokens=body.max_output_tokens,
        logprobs=body.top_logprobs if wanted else None,
    )


def _cache_key(body: CreateBody) -> str | None:
    return body.prompt_cache_key or body.user or body.safety_identifier
