"""What is to be done with the answer to one prompt: its grammar and its parser.

Decides which of a model's abilities matter for a request: a model that may not call anything
has no call markers, one whose prompt closed the trace has none to come. Shared by every
engine that sees raw text.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from antiphon.engine.types import Prompt
from antiphon.text import grammar
from antiphon.text.answer import AnswerParser, Thinking
from antiphon.text.profiles import Profile
from antiphon.text.tools.base import Declared, Dialect
from antiphon.text.tools.hermes import Hermes
from antiphon.text.tools.raw import WithRaw


@dataclass(frozen=True, slots=True)
class Plan:
    """Made before the generation; `parser` gives a fresh parser for its answer."""

    constraint: str | None
    thinking: Thinking | None
    dialect: Dialect | None
    declared: Declared
    skip: tuple[str, ...]
    primed: bool
    most: int | None
    forced: bool

    def parser(self) -> AnswerParser:
        """A parser for one answer."""
        return AnswerParser(
            thinking=self.thinking,
            dialect=self.dialect,
            declared=self.declared,
            skip=self.skip,
            primed=self.primed,
            max_calls=self.most,
            forced=self.forced,
        )


def make(prompt: Prompt, profile: Profile, rendered: str, *, native: bool = True) -> Plan:
    """The plan for a prompt that was rendered to this text.

    `native` says that the model's own template knows tools. A model that does not has never
    learned to stop after its calls, so where the form is demanded there is one call only.

    Raises:
        ConstraintRejected: what is demanded cannot be enforced.
    """
    thinking, tail = profile.thinking, rendered.rstrip()
    primed = thinking is not None and tail.endswith(thinking.open.rstrip())
    if thinking is not None and tail.endswith(tuple(close.rstrip() for close in thinking.closes)):
        thinking = None
    names = prompt.choice.names
    tools = [tool for tool in prompt.tools if names is None or tool.name in names]
    dialect = profile.dialect if tools and prompt.choice.mode != "none" else None
    form = grammar.FORMS.get(dialect.name) if dialect is not None else None
    thought = grammar.Thought(thinking.open, thinking.closes[0], primed) if thinking else None
    demanded = prompt.choice.mode == "required" or prompt.output is not None
    if dialect is not None and form is None and demanded:
        # The family's own form cannot be enforced, so the demanded calls come in ours.
        dialect, form = Hermes(), grammar.HERMES
    if dialect is not None and any(tool.raw for tool in tools):
        dialect = WithRaw(dialect)
    forced = prompt.choice.mode == "required"
    if demanded and not native:
        prompt = replace(prompt, choice=replace(prompt.choice, most=1))
    constraint = grammar.build(prompt, form, thought)
    return Plan(
        constraint=constraint,
        thinking=thinking,
        dialect=dialect,
        declared=Declared.of(tools),
        skip=profile.skip,
        primed=primed,
        most=prompt.choice.most,
        forced=forced and constraint is not None,
    )
