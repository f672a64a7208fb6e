"""How each family writes a call, for tests that make up answers.

Decides the written form and which arguments it can carry. It is written down a second time
here, on purpose: what the parsers read is checked against it.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from hypothesis import strategies as st

Arguments = dict[str, Any]
Calls = Sequence[tuple[str, Arguments]]

_QUOTE = '<|"|>'
# Marker text of several families, for the inside of strings.
_NASTY = ("</tool_call>", "<tool_call>", '"', "\\", "]", "}", "```", "<|call|>", "[/ARGS]", "\n")
_CHARACTERS = st.sampled_from([*"abz 09_é東😀{[(<>|", "\t", "\x7f"])
_STRINGS = st.lists(_CHARACTERS | st.sampled_from(_NASTY), max_size=6).map("".join)
_NUMBERS = st.integers(-(10**9), 10**9) | st.floats(-1e6, 1e6, allow_nan=False)
_SCALARS = st.none() | st.booleans() | _NUMBERS
_KEYS = st.sampled_from(["city", "a_b", "o", "from", "x1"])


def _json(strings: st.SearchStrategy[str], keys: st.SearchStrategy[str]) -> Any:
    values = st.recursive(
        _SCALARS | strings,
        lambda inner: st.lists(inner, max_size=3) | st.dictionaries(keys, inner, max_size=3),
        max_leaves=6,
    )
    return st.dictionaries(keys, values, max_size=3)


def _without(*texts: str) -> st.SearchStrategy[str]:
    return _STRINGS.filter(lambda text: not any(part in text for part in texts))


ANY = _json(_STRINGS, _KEYS | _STRINGS)
LITERAL = _json(_STRINGS, _KEYS)
QUOTED = _json(_without(_QUOTE, "<escape>"), _KEYS)
# Bare text has no quotes: a string is declared as one, and its end marker ends it.
BARE = st.fixed_dictionaries(
    {"city": _without("</")}, optional={"days": st.integers(), "o": _json(_STRINGS, _KEYS)}
)


@dataclass(frozen=True)
class Form:
    """`write` gives the markup of some calls. `said` is what stands before visible text."""

    write: Callable[[Calls], str]
    arguments: st.SearchStrategy[Arguments] = ANY
    thinking: str = "think"
    said: str = ""
    text_first: bool = True


def _dump(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)


def _each(write: Callable[[str, Arguments], str], between: str = "") -> Callable[[Calls], str]:
    return lambda calls: between.join(write(name, arguments) for name, arguments in calls)


def _object(name: str, arguments: Arguments, keys: tuple[str, str] = ("name", "arguments")) -> str:
    return _dump({keys[0]: name, keys[1]: arguments})


def _list(calls: Calls) -> str:
    return "[" + ", ".join(_object(name, arguments) for name, arguments in calls) + "]"


def _bare(value: Any) -> str:
    return value if isinstance(value, str) else _dump(value)


def _qwen(name: str, arguments: Arguments) -> str:
    members = (f"<parameter={k}>\n{_bare(v)}\n</parameter>\n" for k, v in arguments.items())
    return f"<tool_call>\n<function={name}>\n{''.join(members)}</function>\n</tool_call>"


def _glm(name: str, arguments: Arguments) -> str:
    members = (
        f"<arg_key>{k}</arg_key>\n<arg_value>{_bare(v)}</arg_value>\n" for k, v in arguments.items()
    )
    return f"<tool_call>{name}\n{''.join(members)}</tool_call>"


def _invoke(name: str, arguments: Arguments) -> str:
    members = (f'<parameter name="{k}">{_bare(v)}</parameter>\n' for k, v in arguments.items())
    return f'<invoke name="{name}">\n{"".join(members)}</invoke>\n'


def _gemma(value: Any, quote: str) -> str:
    match value:
        case str():
            return quote + value + quote
        case dict():
            return "{" + ",".join(f"{k}:{_gemma(v, quote)}" for k, v in value.items()) + "}"
        case list():
            return "[" + ",".join(_gemma(item, quote) for item in value) + "]"
    return _dump(value)


def _python(name: str, arguments: Arguments) -> str:
    return f"{name}({', '.join(f'{key}={value!r}' for key, value in arguments.items())})"


def _pythonic(calls: Calls) -> str:
    return "[" + ", ".join(_python(name, arguments) for name, arguments in calls) + "]"


def _kimi(calls: Calls) -> str:
    inner = "".join(
        f"<|tool_call_begin|>functions.{name}:{index}<|tool_call_argument_begin|>"
        f"{_dump(arguments)}<|tool_call_end|>"
        for index, (name, arguments) in enumerate(calls)
    )
    return f"<|tool_calls_section_begin|>{inner}<|tool_calls_section_end|>"


def _deepseek(before: str, after: str, end: str) -> Callable[[Calls], str]:
    def write(calls: Calls) -> str:
        inner = "\n".join(
            f"<｜tool▁call▁begin｜>{before}{name}{after}{_dump(arguments)}{end}<｜tool▁call▁end｜>"
            for name, arguments in calls
        )
        return f"<｜tool▁calls▁begin｜>{inner}<｜tool▁calls▁end｜>"

    return write


def _commands(calls: Calls) -> str:
    objects = [{"tool_name": name, "parameters": arguments} for name, arguments in calls]
    return f"<|START_ACTION|>{_dump(objects)}<|END_ACTION|>"


FORMS: dict[str, tuple[Form, ...]] = {
    "hermes": (Form(_each(lambda n, a: f"<tool_call>\n{_object(n, a)}\n</tool_call>", "\n")),),
    "mistral": (
        Form(_each(lambda n, a: f"[TOOL_CALLS]{n}[ARGS]{_dump(a)}"), thinking="mistral"),
        Form(lambda calls: f"[TOOL_CALLS]{_list(calls)}"),
    ),
    "llama3": (
        Form(_each(lambda n, a: _object(n, a, ("name", "parameters")), "; "), text_first=False),
        Form(_each(lambda n, a: f"<|python_tag|>{_object(n, a, ('name', 'parameters'))}")),
    ),
    "qwen_coder": (Form(_each(_qwen, "\n"), BARE),),
    "harmony": (
        Form(
            _each(
                lambda n, a: (
                    f"<|channel|>commentary to=functions.{n} <|constrain|>json"
                    f"<|message|>{_dump(a)}<|call|>"
                ),
                "<|start|>assistant",
            ),
            thinking="harmony",
            said="<|channel|>final<|message|>",
        ),
    ),
    "gemma": (
        Form(
            _each(lambda n, a: f"<|tool_call>call:{n}{_gemma(a, _QUOTE)}<tool_call|>"),
            QUOTED,
            thinking="gemma",
        ),
        Form(
            _each(
                lambda n, a: (
                    f"<start_function_call>call:{n}{_gemma(a, '<escape>')}<end_function_call>"
                )
            ),
            QUOTED,
        ),
    ),
    "glm": (Form(_each(_glm, "\n"), BARE),),
    "kimi": (Form(_kimi, thinking="kimi"),),
    "deepseek": (
        Form(_deepseek("function<｜tool▁sep｜>", "\n```json\n", "\n```")),
        Form(_deepseek("", "<｜tool▁sep｜>", "")),
    ),
    "minimax": (
        Form(
            lambda calls: f"<minimax:tool_call>\n{_each(_invoke)(calls)}</minimax:tool_call>", BARE
        ),
    ),
    "granite": (Form(lambda calls: f"<|tool_call|>{_list(calls)}", thinking="granite"),),
    "pythonic": (
        Form(_pythonic, LITERAL, text_first=False),
        Form(lambda calls: f"<|tool_call_start|>{_pythonic(calls)}<|tool_call_end|>", LITERAL),
    ),
    "functionary_v3_1": (Form(_each(lambda n, a: f"<function={n}>{_dump(a)}</function>")),),
    "functionary_v3_2": (
        Form(_each(lambda n, a: f"{n}\n{_dump(a)}", ">>>"), text_first=False),
        Form(_each(lambda n, a: f">>>{n}\n{_dump(a)}"), said="all\n"),
    ),
    "command_r": (Form(_commands, thinking="command_a", said="<|START_RESPONSE|>"),),
}
