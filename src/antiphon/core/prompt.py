"""A request and its transcript become one frozen `Prompt`.

Decides what of the request reaches the engine: instructions lead, tools in order, demands and
sampling as given (contract C3-C6, C13, C18, T3, T4), and whether an answer met the demands.
Knows no template and no store.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from antiphon.core.policy import Policy
from antiphon.core.toolbox import Toolbox
from antiphon.core.transcript import Transcript
from antiphon.engine.types import JsonOutput, Prompt, Sampling, ToolChoice, Turn
from antiphon.schema.items import CustomToolCall, FunctionCall, Message, ToolSearchCall
from antiphon.schema.options import JsonObjectFormat, JsonSchemaFormat
from antiphon.schema.requests import CreateBody, InputTokensBody
from antiphon.schema.response import Response
from antiphon.schema.tools import AllowedTools, CustomChoice, FunctionChoice

LOGPROBS = "message.output_text.logprobs"


def build(
    model: str,
    body: InputTokensBody,
    transcript: Transcript,
    toolbox: Toolbox,
    policy: Policy,
    skip: int = 0,
) -> Prompt:
    """The prompt of a request to the engine's `model`, without the `skip` oldest entries."""
    turns = transcript.turns(skip)
    if body.instructions:
        turns = (Turn("system", body.instructions), *turns)
    return Prompt(
        model=model,
        turns=turns,
        tools=() if body.tool_choice == "none" else toolbox.specs,
        choice=_choice(body),
        output=_output(body),
        sampling=_sampling(body) if isinstance(body, CreateBody) else Sampling(),
        template_variables=_variables(body, policy),
        cache_key=_cache_key(body) if isinstance(body, CreateBody) else None,
    )


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


def _choice(body: InputTokensBody) -> ToolChoice:
    most = body.max_tool_calls if isinstance(body, CreateBody) else None
    if not body.parallel_tool_calls:
        most = 1
    match body.tool_choice:
        case FunctionChoice(name=name) | CustomChoice(name=name):
            return ToolChoice("required", (name,), 1 if most is None else min(most, 1))
        case AllowedTools(mode=mode, tools=tools):
            return ToolChoice(mode, tuple(tool.name for tool in tools), most)
        case "none" | "required" | "auto" as mode:
            return ToolChoice(mode, None, most)
        case _:
            return ToolChoice(most=most)


def _output(body: InputTokensBody) -> JsonOutput | None:
    match body.text.format:
        case JsonSchemaFormat(schema_=schema):
            return JsonOutput(schema)
        case JsonObjectFormat():
            return JsonOutput()
        case _:
            return None


def _variables(body: InputTokensBody, policy: Policy) -> Mapping[str, Any]:
    """Template variables; what the client sets itself wins over the effort (C6, P6)."""
    effort = body.reasoning.effort
    if not policy.map_effort or effort is None:
        return body.chat_template_kwargs
    mapped: dict[str, Any] = {"enable_thinking": effort != "none"}
    if effort != "none":
        mapped["reasoning_effort"] = effort
    return {**mapped, **body.chat_template_kwargs}


def unmet(prompt: Prompt, response: Response) -> str | None:
    """What was demanded of a completed answer and is not there (T3): for engines that could
    not enforce it. None where all is well."""
    kinds = (FunctionCall, CustomToolCall, ToolSearchCall)
    called = any(isinstance(item, kinds) for item in response.output)
    if prompt.choice.mode == "required" and not called:
        return "a call was demanded, and none was made"
    if prompt.output is None or called:
        return None
    texts = [
        part.text
        for item in response.output
        if isinstance(item, Message) and not isinstance(item.content, str)
        for part in item.content
        if part.type == "output_text"
    ]
    try:
        json.loads("".join(texts))
    except ValueError:
        return "JSON was demanded, and something else was said"
    return None
