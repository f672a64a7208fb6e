"""Demands on an answer become one grammar: calls that must be made, JSON that must be given.

Decides contract T3, T4 and T7 for every engine: the result is one Lark text in llguidance's
dialect, which this process validates before anything is generated, and which engines take as
it is. JSON has fixed white space, since small models love to go on with line breaks.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from llguidance import LLMatcher

from antiphon.engine.errors import ConstraintRejected
from antiphon.engine.types import Prompt, ToolSpec

MAX_SCHEMA_BYTES = 65_536
MAX_SCHEMA_DEPTH = 32
MAX_REFERENCES = 64

_HEADER = "%llguidance {}\n"
_ANYTHING = "/(?s:.*)/"
_LAYOUT = {"whitespace_flexible": False, "key_separator": ": ", "item_separator": ", "}


@dataclass(frozen=True, slots=True)
class Form:
    """How a call is written: text before its name, between name and arguments, behind them.

    `between` stands between two calls. `marker` begins a call in free text; it is the
    beginning of `before`.
    """

    marker: str
    before: str
    middle: str
    after: str
    between: str


HERMES = Form("<tool_call>", '<tool_call>\n{"name": "', '", "arguments": ', "}\n</tool_call>", "\n")
FORMS: Mapping[str, Form] = {
    "hermes": HERMES,
    "qwen_coder": HERMES,
    "mistral": Form("[TOOL_CALLS]", "[TOOL_CALLS]", "[ARGS]", "", ""),
    "llama3": Form("", '{"name": "', '", "parameters": ', "}", "; "),
}


@dataclass(frozen=True, slots=True)
class Thought:
    """Where a reasoning trace may stand: its markers, and whether the prompt opened it."""

    open: str
    close: str
    begun: bool


def build(prompt: Prompt, form: Form | None, thought: Thought | None) -> str | None:
    """The grammar of an answer, or None where anything may be said.

    `form` is None where no call can be enforced, `thought` where no trace can come.

    Raises:
        ConstraintRejected: a schema that cannot be enforced, or is too large.
    """
    if prompt.constraint is not None:
        return prompt.constraint
    callable_ = _callable(prompt) if form is not None else []
    form = form or HERMES
    rules: list[str] = []
    if prompt.choice.mode == "required":
        rules += ["start: thought calls", *_calls(callable_, form, prompt.choice.most)]
    elif prompt.output is not None:
        schema = prompt.output.schema
        document = {"type": "object"} if schema is None else schema
        rules.append(f"document: %json {_checked(document)}")
        if callable_:
            rules += ["start: thought (document | calls)"]
            rules += _calls(callable_, form, prompt.choice.most)
        else:
            rules.append("start: thought document")
    elif form.marker and any(tool.strict for _, tool in callable_):
        rules += ["start: (until call)* rest", f"rest: {_ANYTHING}"]
        rules.append(f"until[suffix={_string(form.marker)}]: {_ANYTHING}")
        rules += _call_rules(callable_, form, free=True)
    if not rules:
        return None
    rules += _thought(thought)
    grammar = _HEADER + "\n".join(rules) + "\n"
    if error := LLMatcher.validate_grammar(grammar):
        raise ConstraintRejected(f"The demanded form cannot be enforced: {_first_line(error)}")
    return grammar


def _callable(prompt: Prompt) -> list[tuple[int, ToolSpec]]:
    if prompt.choice.mode == "none":
        return []
    names = prompt.choice.names
    return [
        (index, tool)
        for index, tool in enumerate(prompt.tools)
        if names is None or tool.name in names
    ]


def _calls(tools: Sequence[tuple[int, ToolSpec]], form: Form, most: int | None) -> list[str]:
    more = "*" if most is None else f"{{0,{most - 1}}}"
    between = f"{_string(form.between)} " if form.between else ""
    calls = "calls: call" if most == 1 else f"calls: call ({between}call){more}"
    return [calls, *_call_rules(tools, form)]


def _call_rules(
    tools: Sequence[tuple[int, ToolSpec]], form: Form, *, free: bool = False
) -> list[str]:
    """One rule per function. In free text the marker has been said, and only strict schemas
    bind: what a client did not ask to be enforced need not be expressible."""
    before = form.before.removeprefix(form.marker) if free else form.before
    names = " | ".join(f"call_{index}" for index, _ in tools)
    rules = [f"call: {names}"]
    for index, tool in tools:
        head = before + json.dumps(tool.name)[1:-1] + form.middle
        after = f" {_string(form.after)}" if form.after else ""
        rules.append(f"call_{index}: {_string(head)} arguments_{index}{after}")
        schema: Mapping[str, Any] = {"type": "object"}
        if tool.strict or not free:
            schema = _parameters(tool)
        rules.append(f"arguments_{index}: %json {_checked(schema, index)}")
    return rules


def _parameters(tool: ToolSpec) -> Mapping[str, Any]:
    """The schema of the arguments, which are always an object."""
    schema = tool.parameters or {"properties": {}, "additionalProperties": False}
    return {"type": "object", **schema} if "$ref" not in schema else schema


def _thought(thought: Thought | None) -> Iterable[str]:
    if thought is None:
        return ['thought: ""']
    begun = "trace /[ \\n]{0,4}/"
    rule = begun if thought.begun else f"({_string(thought.open)} {begun})?"
    return [f"thought: {rule}", f"trace[suffix={_string(thought.close)}]: {_ANYTHING}"]


def _checked(schema: Mapping[str, Any] | bool, tool: int | None = None) -> str:
    """The schema as the grammar takes it, once it is known that it can be enforced."""
    _check_size(schema, tool)
    laid_out = {**schema, "x-guidance": _LAYOUT} if isinstance(schema, Mapping) else schema
    text = json.dumps(laid_out, ensure_ascii=False)
    if error := LLMatcher.validate_grammar(f"{_HEADER}start: %json {text}\n"):
        raise ConstraintRejected(f"The schema cannot be enforced: {_reason(error)}", tool)
    return text


def _check_size(schema: Any, tool: int | None) -> None:
    if len(json.dumps(schema, ensure_ascii=False).encode()) > MAX_SCHEMA_BYTES:
        raise ConstraintRejected(f"The schema is larger than {MAX_SCHEMA_BYTES} bytes.", tool)
    references = 0
    level = [schema]
    for _ in range(MAX_SCHEMA_DEPTH):
        deeper: list[Any] = []
        for value in level:
            if isinstance(value, Mapping):
                references += "$ref" in value
                deeper += value.values()
            elif isinstance(value, list):
                deeper += value
        if references > MAX_REFERENCES:
            raise ConstraintRejected(f"The schema has more than {MAX_REFERENCES} references.", tool)
        if not deeper:
            return
        level = deeper
    raise ConstraintRejected(f"The schema is deeper than {MAX_SCHEMA_DEPTH} levels.", tool)


def _string(text: str) -> str:
    """A Lark string literal."""
    return json.dumps(text, ensure_ascii=False)


def _reason(error: str) -> str:
    return _first_line(error).partition("failed to compile JSON schema: ")[2] or _first_line(error)


def _first_line(error: str) -> str:
    return error.strip().splitlines()[0][:300]
