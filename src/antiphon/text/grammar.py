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
from antiphon.text.recursion import bottomless
from antiphon.text.tools.raw import CLOSE, OPEN

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
    elif form.marker and any(tool.strict or tool.grammar for _, tool in callable_):
        rules += _free(callable_, form)
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


def _free(tools: Sequence[tuple[int, ToolSpec]], form: Form) -> list[str]:
    """Anything, but a call that has begun is held to its schema or grammar."""
    rules = [f"rest: {_ANYTHING}"]
    choices: list[str] = []
    for number, (marker, raw) in enumerate(((form.marker, False), (OPEN, True))):
        some = [(index, tool) for index, tool in tools if tool.raw is raw]
        if some:
            choices.append(f"until_{number} call_{'raw' if raw else 'json'}")
            rules.append(f"until_{number}[suffix={_string(marker)}]: {_ANYTHING}")
            names = " | ".join(f"call_{index}" for index, _ in some)
            rules.append(f"call_{'raw' if raw else 'json'}: {names}")
    return [f"start: ({' | '.join(choices)})* rest", *rules, *_rules(tools, form, free=True)]


def _call_rules(tools: Sequence[tuple[int, ToolSpec]], form: Form) -> list[str]:
    names = " | ".join(f"call_{index}" for index, _ in tools)
    return [f"call: {names}", *_rules(tools, form, free=False)]


def _rules(tools: Sequence[tuple[int, ToolSpec]], form: Form, *, free: bool) -> list[str]:
    """One rule per tool. In free text the marker has been said, and only strict schemas bind:
    what a client did not ask to be enforced need not be expressible."""
    before = form.before.removeprefix(form.marker) if free else form.before
    rules: list[str] = []
    for index, tool in tools:
        if tool.raw:
            rules += _raw(index, tool, free=free)
            continue
        head = before + json.dumps(tool.name)[1:-1] + form.middle
        after = f" {_string(form.after)}" if form.after else ""
        rules.append(f"call_{index}: {_string(head)} arguments_{index}{after}")
        schema: Mapping[str, Any] = {"type": "object"}
        if tool.strict or not free:
            schema = _parameters(tool)
        rules.append(f"arguments_{index}: %json {_checked(schema, index)}")
    return rules


def _raw(index: int, tool: ToolSpec, *, free: bool) -> list[str]:
    """The rule of a tool that takes free text."""
    head = f"{'' if free else OPEN}{tool.name}\n"
    end = _string("\n" + CLOSE)
    if tool.grammar is None:
        return [
            f"call_{index}: {_string(head)} input_{index}",
            f"input_{index}[suffix={end}]: {_ANYTHING}",
        ]
    definition = tool.grammar.definition
    if tool.grammar.syntax == "lark":
        body = f"%lark {{\n{definition}\n}}"
        alone = _HEADER + definition
    else:
        body = f"/{definition.replace('/', chr(92) + '/')}/"
        alone = f"{_HEADER}start: {body}\n"
    if error := LLMatcher.validate_grammar(alone):
        raise ConstraintRejected(f"The grammar cannot be used: {_first_line(error)}", index)
    return [f"call_{index}: {_string(head)} input_{index} {end}", f"input_{index}: {body}"]


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
    if bottomless(schema):
        raise ConstraintRejected("The schema needs itself without an end.", tool)
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
    """What the compiler has against a schema; the excerpt of the grammar behind it is ours."""
    _, _, reason = error.partition("failed to compile JSON schema: ")
    return " ".join(reason.partition("\n   1 | ")[0].split())[:300] or _first_line(error)


def _first_line(error: str) -> str:
    return error.strip().splitlines()[0][:300]
