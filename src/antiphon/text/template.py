"""A `Prompt` becomes the text that a model was trained to read.

Decides which turns the model's chat template gets to see (contract I3, I4, I5, I7, I8) and
keeps control tokens of the client's text out of their meaning (I13). What a template cannot
place is written in another form, never dropped. Knows no tokeniser and no engine.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any, NoReturn

from antiphon.engine.errors import PromptRejected, VariableRejected
from antiphon.engine.types import Prompt, ToolCall, ToolSpec, Turn
from antiphon.text import hermes
from antiphon.text.chat import CHATML, RESERVED, ChatTemplate, Message, Refusal
from antiphon.text.sentinel import Segment, Sentinels, Veil
from antiphon.text.tools.raw import CLOSE, OPEN
from antiphon.text.traits import Traits, probe, with_typed_content

# Stands where a strict template wants a turn that the conversation does not have.
NOTHING_SAID = "(no message)"
_GLUE = "\n\n"
_INPUT = {
    "type": "object",
    "properties": {"input": {"type": "string"}},
    "required": ["input"],
}


class PromptTemplate:
    """The chat template of one model, with all that is known about it.

    `source` None means that the model brings no template: ChatML. `control_tokens` are
    protected wherever a client writes them; `user_defined_tokens` only where the template
    writes them itself, because models also declare runs of spaces and HTML tags as such.
    """

    def __init__(
        self,
        source: str | None,
        *,
        bos_token: str = "",
        eos_token: str = "",
        control_tokens: Iterable[str] = (),
        user_defined_tokens: Iterable[str] = (),
    ) -> None:
        """Compile and probe the template.

        Raises:
            EngineError: it is no template, or it renders no conversation at all.
        """
        self._template = ChatTemplate(
            CHATML if source is None else source, bos_token=bos_token, eos_token=eos_token
        )
        self.traits: Traits = probe(self._template)
        written = self._template.source + ("" if self.traits.tools else "".join(hermes.MARKERS))
        structure = (token for token in user_defined_tokens if token.strip() and token in written)
        self._sentinels = Sentinels([*control_tokens, *structure])

    @property
    def source(self) -> str:
        """The text of the template."""
        return self._template.source

    def render(self, prompt: Prompt) -> tuple[Segment, ...]:
        """The text of the prompt, up to where the model's turn begins.

        Raises:
            PromptRejected: the template refuses the conversation, or a template variable has
                a name that belongs to the conversation itself.
        """
        if taken := RESERVED & prompt.template_variables.keys():
            raise VariableRejected(f"The template variable '{min(taken)}' cannot be set.")
        veil = self._sentinels.open()
        tools = [_declaration(tool, veil) for tool in prompt.tools]
        messages = self._messages([_hidden(turn, veil) for turn in prompt.turns], tools)
        if self.traits.typed_content:
            messages = [with_typed_content(message) for message in messages]
        try:
            rendered = self._template.render(
                messages,
                tools if self.traits.tools else None,
                veil.hide(prompt.template_variables),
            )
        except Refusal as refusal:
            raise PromptRejected(
                f"The model's chat template refuses this conversation: {refusal}"
            ) from None
        return veil.segments(rendered)

    def _messages(self, turns: list[Turn], tools: Sequence[Message]) -> list[Message]:
        traits = self.traits
        turns = _answered(turns)
        if not traits.tools:
            turns = _told(turns)
            if tools:
                turns = _with_system(turns, hermes.declare(tools))
        turns = self._placed_system(turns)
        if traits.tools:
            turns = list(self._split_calls(turns))
        turns = self._alternating(turns)
        return [self._message(turn) for turn in turns]

    def _placed_system(self, turns: list[Turn]) -> list[Turn]:
        """System and developer turns where the template can show them (I3)."""
        traits = self.traits
        if not traits.developer:
            turns = [
                replace(turn, role="system") if turn.role == "developer" else turn for turn in turns
            ]
        roles = {turn.role for turn in turns} & {"system", "developer"}
        late = {"system": traits.late_system, "developer": traits.late_developer}
        lead = {"system": traits.system, "developer": traits.developer}
        if all(late[role] for role in roles):
            return turns
        texts = [turn.content for turn in turns if turn.role in roles]
        if len(texts) == 1 and turns[0].role in roles and lead[turns[0].role]:
            return turns
        text = _GLUE.join(filter(None, texts))
        rest = [turn for turn in turns if turn.role not in roles]
        if traits.system:
            return [Turn("system", text), *rest]
        if not text:
            return rest
        for index, turn in enumerate(rest):
            if turn.role == "user":
                told = replace(turn, content=f"{text}{_GLUE}{turn.content}")
                return [*rest[:index], told, *rest[index + 1 :]]
        return [Turn("user", text), *rest]

    def _split_calls(self, turns: list[Turn]) -> Iterable[Turn]:
        """Turns with calls, taken apart where the template shows only one thing per turn."""
        traits = self.traits
        index = 0
        while index < len(turns):
            turn = turns[index]
            index += 1
            if not turn.calls:
                yield turn
                continue
            results = turns[index : index + len(turn.calls)]
            index += len(results)
            if turn.content and not traits.text_with_calls:
                yield replace(turn, calls=())
                turn = replace(turn, content="", reasoning="")
            if traits.parallel_calls or len(turn.calls) == 1:
                yield turn
                yield from results
                continue
            for call, result in zip(turn.calls, results, strict=True):
                yield replace(turn, calls=(call,))
                yield result
                turn = replace(turn, content="", reasoning="")

    def _alternating(self, turns: list[Turn]) -> list[Turn]:
        """Turns in an order that the template accepts (I4)."""
        traits = self.traits
        found: list[Turn] = []
        for turn in turns:
            before = found[-1] if found else None
            if before is None:
                found.append(turn)
            elif (
                not traits.consecutive
                and turn.role == before.role
                and turn.role in ("user", "assistant")
            ):
                found[-1] = _joined(before, turn)
            elif turn.role == "user" and before.role == "tool" and not traits.user_after_results:
                found += [Turn("assistant", NOTHING_SAID), turn]
            else:
                found.append(turn)
        start = next((i for i, turn in enumerate(found) if turn.role not in _SYSTEM), len(found))
        leads = start < len(found) and found[start].role != "user" and not traits.assistant_first
        if leads or not (traits.userless or any(turn.role == "user" for turn in found)):
            found.insert(start, Turn("user", NOTHING_SAID))
        return found

    def _message(self, turn: Turn) -> Message:
        message: Message = {"role": turn.role, "content": turn.content}
        if turn.reasoning:
            message[self.traits.reasoning_key] = turn.reasoning
        if turn.calls:
            message["tool_calls"] = [
                {
                    "id": self._call_id(call.call_id),
                    "type": "function",
                    "function": {"name": call.name, "arguments": self._arguments(call)},
                }
                for call in turn.calls
            ]
        if turn.role == "tool":
            message["tool_call_id"] = self._call_id(turn.call_id)
            message["name"] = turn.name
        return message

    def _call_id(self, call_id: str) -> str:
        if self.traits.short_ids:
            return hashlib.sha256(call_id.encode()).hexdigest()[:9]
        return call_id

    def _arguments(self, call: ToolCall) -> Any:
        if not self.traits.argument_objects:
            return call.arguments
        # Templates walk through the fields of the object, so anything else is put into one.
        value = _value(call.arguments)
        return value if isinstance(value, dict) else {"arguments": value}


_SYSTEM = ("system", "developer")


def _hidden(turn: Turn, veil: Veil) -> Turn:
    """The turn with every string of the client's protected (I13)."""
    return replace(
        turn,
        content=veil.hide(turn.content),
        reasoning=veil.hide(turn.reasoning),
        calls=tuple(
            ToolCall(
                veil.hide(call.call_id), veil.hide(call.name), _hidden_json(call.arguments, veil)
            )
            for call in turn.calls
        ),
        call_id=veil.hide(turn.call_id),
        name=veil.hide(turn.name),
    )


def _hidden_json(text: str, veil: Veil) -> str:
    """JSON text with its strings protected, as they are after its escapes are read."""
    value = _value(text)
    hidden = veil.hide(value)
    if value == text:
        return str(hidden)
    return text if hidden == value else json.dumps(hidden, ensure_ascii=False)


def _declaration(tool: ToolSpec, veil: Veil) -> Message:
    """A tool in the form of the chat API, which is what templates know."""
    function: Message = {"name": tool.name, "description": tool.description or ""}
    function["parameters"] = tool.parameters or {"type": "object", "properties": {}}
    if tool.raw:
        function["description"] = "\n\n".join(filter(None, (tool.description, _how_to_call(tool))))
        function["parameters"] = _INPUT
    hidden: Message = veil.hide(function)
    return {"type": "function", "function": hidden}


def _how_to_call(tool: ToolSpec) -> str:
    """What the model is told of a tool that takes free text."""
    text = f"To call it, write its name and its input like this:\n{OPEN}{tool.name}\ninput\n{CLOSE}"
    if tool.grammar is None:
        return text
    return (
        f"{text}\nThe input matches this {tool.grammar.syntax} grammar:\n{tool.grammar.definition}"
    )


def _value(arguments: str) -> Any:
    """The JSON value of a call's arguments; text that is not JSON stands for itself."""
    if not arguments.strip():
        return {}
    try:
        value = json.loads(arguments, parse_constant=_no_number)
        # Half of a surrogate pair can be escaped in JSON, but no prompt can contain it.
        json.dumps(value, ensure_ascii=False).encode()
    except (ValueError, RecursionError):
        return arguments
    return value


def _no_number(name: str) -> NoReturn:
    raise ValueError(f"{name} is not JSON")


def _answered(turns: list[Turn]) -> list[Turn]:
    """Every call followed by its result, in call order; a missing one is empty (I5, I7).

    A result without a call becomes a user turn, since no template has a place for it.
    """
    found: list[Turn] = []
    index = 0
    while index < len(turns):
        turn = turns[index]
        index += 1
        if turn.role == "tool":
            found.append(Turn("user", hermes.result(turn.content)))
            continue
        found.append(turn)
        if not turn.calls:
            continue
        results: list[Turn] = []
        while index < len(turns) and turns[index].role == "tool":
            results.append(turns[index])
            index += 1
        for call in turn.calls:
            at = next((i for i, r in enumerate(results) if r.call_id == call.call_id), None)
            content = "" if at is None else results.pop(at).content
            found.append(Turn("tool", content, call_id=call.call_id, name=call.name))
        found += [Turn("user", hermes.result(result.content)) for result in results]
    return found


def _told(turns: list[Turn]) -> list[Turn]:
    """Calls and results as text inside ordinary turns."""
    found: list[Turn] = []
    after_result = False
    for turn in turns:
        if turn.role == "tool":
            text = hermes.result(turn.content)
            if after_result:
                found[-1] = replace(found[-1], content=f"{found[-1].content}\n{text}")
            else:
                found.append(Turn("user", text))
        elif turn.calls:
            calls = (hermes.call(call.name, _value(call.arguments)) for call in turn.calls)
            text = "\n".join(filter(None, (turn.content, *calls)))
            found.append(replace(turn, content=text, calls=()))
        else:
            found.append(turn)
        after_result = turn.role == "tool"
    return found


def _with_system(turns: list[Turn], text: str) -> list[Turn]:
    """The turns with `text` at the end of the leading system message."""
    if turns and turns[0].role in _SYSTEM:
        content = _GLUE.join(filter(None, (turns[0].content, text)))
        return [replace(turns[0], content=content), *turns[1:]]
    return [Turn("system", text), *turns]


def _joined(first: Turn, second: Turn) -> Turn:
    return replace(
        first,
        content=_GLUE.join(filter(None, (first.content, second.content))),
        reasoning=_GLUE.join(filter(None, (first.reasoning, second.reasoning))),
        calls=(*first.calls, *second.calls),
    )
