"""What a chat template can render, found out by small test conversations.

Decides nothing about real prompts: it answers questions (does a late system message show? may
two user turns follow each other?) once, when a model is loaded, and always the same for the
same template. A conversation counts as rendered when nothing raises and every text shows, in
order.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from antiphon.engine.errors import EngineError
from antiphon.text.chat import ChatTemplate, Message, Refusal

# Words that no template writes by itself.
_A, _B, _C, _D, _E = "alpaquor", "brontemi", "celumbra", "dorvenil", "estrovar"
_NAME, _KEY, _CALL_IDS = "fenwicula", "gastrimo", ("call_a1b2c3d4e5f6", "a1b2c3d4e")
_REASONING_KEYS = ("reasoning_content", "thinking", "reasoning")


@dataclass(frozen=True, slots=True)
class Traits:
    """The answers.

    typed_content: contents must be lists of `{"type": "text", "text": …}`.
    system, developer: such a leading message shows. late_system, late_developer: several of
    them show, wherever they stand.
    consecutive: turns of one role may follow each other. assistant_first: the first turn may
    be the assistant's. userless: a conversation without a user turn is rendered.
    tools: declarations, calls and results all show. argument_objects: the arguments of a call
    are given as an object, else as JSON text. short_ids: call ids must be nine letters or
    digits. parallel_calls: a turn may have several calls. text_with_calls: the text of a turn
    with calls shows. user_after_results: a user turn may follow the result of a call.
    reasoning_key: the field of a message that carries its reasoning trace.
    """

    typed_content: bool = False
    system: bool = True
    developer: bool = False
    late_system: bool = True
    late_developer: bool = False
    consecutive: bool = True
    assistant_first: bool = True
    userless: bool = True
    tools: bool = False
    argument_objects: bool = True
    short_ids: bool = False
    parallel_calls: bool = True
    text_with_calls: bool = True
    user_after_results: bool = True
    reasoning_key: str = "reasoning_content"


def probe(template: ChatTemplate) -> Traits:
    """Find out the traits of a template.

    Raises:
        EngineError: it cannot even render one user turn.
    """
    typed = not _shows(template, False, [_user(_A)], _A)
    if typed and not _shows(template, True, [_user(_A)], _A):
        raise EngineError(f"the model's chat template renders no conversation: {_why(template)}")

    def shows(messages: Sequence[Message], *texts: str, tools: bool = False) -> bool:
        return _shows(template, typed, messages, *texts, tools=tools)

    def leads(role: str) -> bool:
        return shows([_turn(role, _A), _user(_B)], _A, _B)

    def anywhere(role: str) -> bool:
        turns = [_turn(role, _A), _turn(role, _B), _user(_C), _assistant(_D)]
        return shows([*turns, _turn(role, _E), _user(_NAME)], _A, _B, _C, _D, _E, _NAME)

    consecutive = shows(
        [_user(_A), _user(_B), _assistant(_C), _assistant(_D), _user(_E)], _A, _B, _C, _D, _E
    )
    # A template that prints any role shows this one too, but its model was not trained on it.
    developer = "developer" in template.source and leads("developer")
    return Traits(
        typed_content=typed,
        system=leads("system"),
        developer=developer,
        late_system=leads("system") and anywhere("system"),
        late_developer=developer and anywhere("developer"),
        consecutive=consecutive,
        assistant_first=shows([_assistant(_A), _user(_B)], _A, _B),
        userless=shows([_turn("system", _A)], _A),
        reasoning_key=_reasoning_key(template.source),
        **_tool_traits(shows, consecutive),
    )


def _tool_traits(shows: Callable[..., bool], consecutive: bool) -> dict[str, Any]:
    """How calls must be written, or that the template cannot show them."""
    for objects in (True, False):
        for short in (False, True):
            call_id = _CALL_IDS[short]
            asked = [_user(_A), _calls(call_id, objects, _B)]
            answered = [*asked, _result(call_id, _C)]
            # Declared or not: a history keeps its calls when a request brings no tools.
            if not (shows(answered, _A, _NAME, _B, _C) and shows(answered, _A, _B, _C, tools=True)):
                continue
            if not shows([_user(_A)], _NAME, tools=True):
                return {}
            both = [
                _user(_A),
                _calls(call_id, objects, _B, _C),
                _result(call_id, _D),
                _result(_other(call_id), _E),
            ]
            spoken = [_user(_A), _calls(call_id, objects, _C, text=_B), _result(call_id, _D)]
            text_with_calls = shows(spoken, _A, _B, _C, _D)
            return {
                # Text beside a call needs a turn of its own where the template leaves it out.
                "tools": text_with_calls or consecutive,
                "argument_objects": objects,
                "short_ids": short,
                "parallel_calls": shows(both, _A, _B, _C, _D, _E),
                "text_with_calls": text_with_calls,
                "user_after_results": shows([*answered, _user(_D)], _A, _B, _C, _D),
            }
    return {}


def _shows(
    template: ChatTemplate,
    typed: bool,
    messages: Sequence[Message],
    *texts: str,
    tools: bool = False,
) -> bool:
    try:
        rendered = template.render(
            [with_typed_content(message) for message in messages] if typed else messages,
            [_DECLARED] if tools else None,
        )
    except Refusal:
        return False
    # A call's arguments written as Python would write them are not what a model was trained on.
    if f"'{_KEY}'" in rendered:
        return False
    at = 0
    for text in texts:
        at = rendered.find(text, at)
        if at < 0:
            return False
        at += len(text)
    return True


def with_typed_content(message: Message) -> Message:
    """The message with its content as a list of one text part."""
    return {**message, "content": [{"type": "text", "text": message["content"]}]}


def _why(template: ChatTemplate) -> str:
    try:
        template.render([_user(_A)])
    except Refusal as refusal:
        return str(refusal)
    return "the user's text does not show"


def _reasoning_key(source: str) -> str:
    for key in _REASONING_KEYS:
        if re.search(rf"\.{key}\b|['\"]{key}['\"]", source):
            return key
    return _REASONING_KEYS[0]


def _turn(role: str, content: str) -> Message:
    return {"role": role, "content": content}


def _user(content: str) -> Message:
    return _turn("user", content)


def _assistant(content: str) -> Message:
    return _turn("assistant", content)


def _calls(call_id: str, objects: bool, *values: str, text: str = "") -> Message:
    calls = [
        {
            "id": identity,
            "type": "function",
            "function": {
                "name": _NAME,
                "arguments": {_KEY: value} if objects else f'{{"{_KEY}": "{value}"}}',
            },
        }
        for identity, value in zip((call_id, _other(call_id)), values, strict=False)
    ]
    return {"role": "assistant", "content": text, "tool_calls": calls}


def _result(call_id: str, output: str) -> Message:
    return {"role": "tool", "content": output, "tool_call_id": call_id, "name": _NAME}


def _other(call_id: str) -> str:
    return call_id[::-1]


_DECLARED: Message = {
    "type": "function",
    "function": {
        "name": _NAME,
        "description": "A function.",
        "parameters": {"type": "object", "properties": {_KEY: {"type": "string"}}},
    },
}
