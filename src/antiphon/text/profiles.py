"""Model families: how each writes calls and reasoning.

Decides from a chat template alone which family a model belongs to. It is data: a new family is
one line in a table here, and a dialect in `tools/`. Must not know any engine.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import NamedTuple, TypeVar

from antiphon.text.answer import Thinking
from antiphon.text.tools import command_r, harmony, kimi
from antiphon.text.tools.base import Dialect
from antiphon.text.tools.command_r import COMMAND_R
from antiphon.text.tools.deepseek import DEEPSEEK
from antiphon.text.tools.functionary import FUNCTIONARY_V3_1, FUNCTIONARY_V3_2
from antiphon.text.tools.gemma import GEMMA
from antiphon.text.tools.glm import GLM
from antiphon.text.tools.granite import GRANITE
from antiphon.text.tools.harmony import HARMONY
from antiphon.text.tools.hermes import Hermes
from antiphon.text.tools.kimi import KIMI
from antiphon.text.tools.llama3 import Llama3
from antiphon.text.tools.minimax import MINIMAX
from antiphon.text.tools.mistral import Mistral
from antiphon.text.tools.pythonic import PYTHONIC
from antiphon.text.tools.qwen_coder import QwenCoder
from antiphon.text.tools.whole import Whole

_T = TypeVar("_T")

# The dialect of nobody, for `--tool-format none`.
_NO_CALLS = Whole("none", sections={})
_DIALECTS: tuple[Dialect, ...] = (
    Hermes(),
    Mistral(),
    Llama3(),
    QwenCoder(),
    HARMONY,
    GEMMA,
    GLM,
    KIMI,
    DEEPSEEK,
    MINIMAX,
    GRANITE,
    PYTHONIC,
    FUNCTIONARY_V3_1,
    FUNCTIONARY_V3_2,
    COMMAND_R,
)
DIALECTS: Mapping[str, Dialect] = {dialect.name: dialect for dialect in _DIALECTS}

FORMATS: Mapping[str, Thinking] = {
    "think": Thinking("<think>", ("</think>",)),
    "harmony": Thinking(
        "<|channel|>analysis<|message|>",
        (
            "<|end|>",
            "<|return|>",
            "<|channel|>final<|message|>",
            "<|channel|>commentary<|message|>",
        ),
    ),
    "gemma": Thinking("<|channel>thought", ("<channel|>",)),
    # A trace of Kimi's may go over into calls without its end marker.
    "kimi": Thinking("<think>", ("</think>", kimi.SECTION)),
    "mistral": Thinking("[THINK]", ("[/THINK]",)),
    "granite": Thinking("Here is my thought process:", ("Here is my response:",)),
    "seed_oss": Thinking("<seed:think>", ("</seed:think>",)),
    "command_a": Thinking("<|START_THINKING|>", ("<|END_THINKING|>",)),
}


@dataclass(frozen=True, slots=True)
class Profile:
    """What an engine has to know about a family.

    `thinking` is None for models without a trace, `skip` are markers without meaning that
    also come where nothing may be called.
    """

    name: str
    dialect: Dialect
    thinking: Thinking | None = None
    skip: tuple[str, ...] = ()

    @property
    def markers(self) -> tuple[str, ...]:
        """All strings that must reach the parser, also the special tokens they consist of."""
        dialect = self.dialect
        thinking = (self.thinking.open, *self.thinking.closes) if self.thinking else ()
        groups = (thinking, self.skip, dialect.skip, dialect.openers, dialect.inner)
        return tuple(dict.fromkeys(marker for group in groups for marker in group))


class _Family(NamedTuple):
    """A template belongs to a family if it contains all of `contains`."""

    name: str
    contains: tuple[str, ...]
    dialect: str
    skip: tuple[str, ...] = ()


# The first that fits counts, so the most specific ones come first.
_FAMILIES = (
    _Family("harmony", ("<|channel|>", "<|start|>"), "harmony", harmony.SKIP),
    _Family("gemma4", ("<|tool_call>",), "gemma", ("<|tool_response>",)),
    _Family("functiongemma", ("<start_function_call>",), "gemma", ("<start_function_response>",)),
    _Family("gemma3", ("tool_code",), "gemma"),
    _Family("minimax", ("<minimax:tool_call>",), "minimax"),
    _Family("glm", ("<arg_key>",), "glm"),
    _Family("kimi", ("<|tool_call_begin|>",), "kimi"),
    _Family("deepseek", ("<｜tool▁call▁begin｜>",), "deepseek"),
    _Family(
        "seed_oss", ("<seed:tool_call>",), "qwen_coder", ("<seed:tool_call>", "</seed:tool_call>")
    ),
    _Family("command_a", ("<|START_ACTION|>",), "command_r", command_r.SKIP),
    _Family("command_r", ("<|START_OF_TURN_TOKEN|>", "Action:"), "command_r"),
    _Family("functionary_v3_2", (">>>", "<|start_header_id|>"), "functionary_v3_2"),
    _Family("mistral", ("[TOOL_CALLS]",), "mistral"),
    _Family("lfm2", ("<|tool_call_start|>",), "pythonic"),
    _Family("olmo3", ("<function_calls>",), "pythonic"),
    _Family("llama4", ("<|python_start|>",), "pythonic"),
    _Family("llama4", ("[func_name1(",), "pythonic"),
    _Family("qwen_coder", ("<function=", "<parameter="), "qwen_coder"),
    _Family("functionary_v3_1", ("<function=",), "functionary_v3_1"),
    _Family("granite", ("<|tool_call|>",), "granite"),
    _Family("hermes", ("<tool_call>",), "hermes"),
    _Family("llama3", ("<|python_tag|>",), "llama3"),
    _Family("llama3", ("<|start_header_id|>", "tools", "parameters"), "llama3"),
    # A template that knows no tools gets them in our neutral form.
    _Family("neutral", (), "hermes"),
)

# Likewise for the markers around a trace. Old templates contain the closing one only.
_TRACES = (
    (("<|channel|>analysis",), "harmony"),
    (("<|channel>thought",), "gemma"),
    (("<|channel>", "<channel|>"), "gemma"),
    (("<seed:think>",), "seed_oss"),
    (("<|START_THINKING|>",), "command_a"),
    (("[THINK]",), "mistral"),
    (("Here is my thought process:",), "granite"),
    (("<think>", kimi.SECTION), "kimi"),
    (("<think>",), "think"),
    (("</think>",), "think"),
)


def detect(template_source: str | None, *, tools: bool = True) -> Profile:
    """The profile of the model with this chat template.

    `tools` is False where the template cannot show tools, whatever it contains: they are then
    offered in the neutral form, and calls come in it.
    """
    source = template_source or ""
    family = next(row for row in _FAMILIES if all(mark in source for mark in row.contains))
    trace = next((name for marks, name in _TRACES if all(mark in source for mark in marks)), None)
    return Profile(
        name=family.name,
        dialect=DIALECTS[family.dialect if tools else "hermes"],
        thinking=FORMATS[trace] if trace is not None else None,
        skip=family.skip,
    )


def override(profile: Profile, tool_format: str | None, reasoning_format: str | None) -> Profile:
    """The profile with what a user knows better. None and `auto` keep what was detected.

    Raises:
        ValueError: there is no such format; the message lists those that exist.
    """
    if tool_format is not None and tool_format != "auto":
        dialects: dict[str, Dialect] = {**DIALECTS, "none": _NO_CALLS}
        profile = replace(profile, dialect=_named("tool", tool_format, dialects))
    if reasoning_format is not None and reasoning_format != "auto":
        formats: dict[str, Thinking | None] = {**FORMATS, "none": None}
        profile = replace(profile, thinking=_named("reasoning", reasoning_format, formats))
    return profile


def _named(kind: str, name: str, known: Mapping[str, _T]) -> _T:
    if name not in known:
        names = ", ".join(("auto", *known))
        raise ValueError(f"There is no {kind} format {name!r}. The formats are: {names}.")
    return known[name]
