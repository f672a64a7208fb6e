"""Reasoning echo: when a remembered trace is put back into a prompt, and within what bounds."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from antiphon.core import echo
from antiphon.core.echo import OVERHEAD, ReasoningEcho
from antiphon.engine.types import Prompt, ToolCall, ToolSpec, Turn

LIMIT = 100_000
TRACE = "I think so."
ASKED = Prompt("m", (Turn("system", "Be brief."), Turn("user", "2+2?")))


def continued(prompt: Prompt, *more: Turn, answer: str = "4") -> Prompt:
    """The next request of the conversation: the answer without its trace, and a question."""
    turns = (*prompt.turns, Turn("assistant", answer), Turn("user", "Why?"), *more)
    return replace(prompt, turns=turns)


def remembering(prompt: Prompt = ASKED, limit: int = LIMIT) -> ReasoningEcho:
    known = ReasoningEcho(limit)
    known.remember(prompt, "ann", "4", TRACE)
    return known


def traces(prompt: Prompt) -> list[str]:
    return [turn.reasoning for turn in prompt.turns if turn.role == "assistant"]


def test_the_trace_is_put_back_and_nothing_else_is_changed() -> None:
    """R6."""
    given = continued(ASKED)
    restored = remembering().restore(given, "ann")
    assert traces(restored) == [TRACE]
    assert traces(given) == [""]
    bare = tuple(replace(turn, reasoning="") for turn in restored.turns)
    assert replace(restored, turns=bare) == given


def test_white_space_around_the_answer_does_not_matter() -> None:
    """R6: clients trim what they show."""
    assert traces(remembering().restore(continued(ASKED, answer=" 4\n"), "ann")) == [TRACE]


TOOL = ToolSpec("f", parameters={"type": "object", "properties": {}})


@pytest.mark.parametrize(
    "changes",
    [
        {"model": "other"},
        {"template_variables": {"enable_thinking": False}},
        {"tools": (TOOL,)},
        {"turns": (Turn("system", "Be long."), *continued(ASKED).turns[1:])},
        {"turns": continued(ASKED).turns[1:]},
        {"turns": (ASKED.turns[0], Turn("user", "3+1?"), *continued(ASKED).turns[2:])},
        {"turns": continued(ASKED, answer="5").turns},
    ],
    ids=["model", "variables", "tools", "system", "no system", "question", "answer"],
)
def test_another_conversation_does_not_get_it(changes: dict[str, Any]) -> None:
    """R6: only the same model, variables, tools and turns."""
    given = replace(continued(ASKED), **changes)
    assert remembering().restore(given, "ann") is given


def test_another_owner_does_not_get_it() -> None:
    """R6, S8."""
    given = continued(ASKED)
    assert remembering().restore(given, "bob") is given


def test_the_same_tools_and_variables_are_the_same() -> None:
    """R6: in any order of the variables."""
    prompt = replace(ASKED, tools=(TOOL,), template_variables={"a": 1, "b": [True]})
    given = replace(continued(prompt), template_variables={"b": [True], "a": 1})
    assert traces(remembering(prompt).restore(given, "ann")) == [TRACE]


def test_what_the_client_sends_itself_wins() -> None:
    """R6: a turn that came with its reasoning item."""
    turns = (*ASKED.turns, Turn("assistant", "4", reasoning="mine"), Turn("user", "Why?"))
    given = replace(ASKED, turns=turns)
    assert remembering().restore(given, "ann") is given


def test_a_turn_with_calls_is_no_ordinary_answer() -> None:
    """R6."""
    calls = (ToolCall("c", "f", "{}"),)
    turns = (*ASKED.turns, Turn("assistant", "4", calls=calls), Turn("tool", "x", call_id="c"))
    given = replace(ASKED, turns=turns)
    assert remembering().restore(given, "ann") is given


def test_a_chain_gets_every_trace_back_though_it_never_sends_one() -> None:
    """R6: each turn's key leaves the traces before it out."""
    known = ReasoningEcho(LIMIT)
    prompt = ASKED
    for number in range(4):
        known.remember(known.restore(prompt, "ann"), "ann", f"a{number}", f"trace {number}")
        prompt = continued(prompt, answer=f"a{number}")
    assert traces(known.restore(prompt, "ann")) == [f"trace {number}" for number in range(4)]


def test_an_answer_given_again_replaces_its_trace() -> None:
    """R6."""
    known = remembering()
    known.remember(ASKED, "ann", "4", "Another thought.")
    assert traces(known.restore(continued(ASKED), "ann")) == ["Another thought."]


def question(number: int) -> Prompt:
    """A conversation of its own."""
    return Prompt("m", (Turn("user", f"q{number}"),))


def known_of(known: ReasoningEcho, count: int) -> list[int]:
    """Which conversations of so many are remembered. Looking counts as use."""
    return [n for n in range(count) if traces(known.restore(continued(question(n)), "ann")) != [""]]


def test_the_least_recently_used_go_first() -> None:
    """R6: within the bytes of the setting."""
    size = 100 + OVERHEAD
    known = ReasoningEcho(size * 10)
    for number in range(10):
        known.remember(question(number), "ann", "4", "x" * 100)
    known.restore(continued(question(0)), "ann")
    for number in range(10, 15):
        known.remember(question(number), "ann", "4", "x" * 100)
    assert known_of(known, 15) == [0, *range(6, 15)]


def test_bytes_are_those_of_utf_8() -> None:
    """R6: a character is not a byte."""
    known = ReasoningEcho((90 + OVERHEAD) * 10)
    for number in range(12):
        known.remember(question(number), "ann", "4", "东" * 30)
    assert known_of(known, 12) == list(range(2, 12))


def test_what_is_forgotten_or_replaced_is_no_longer_counted() -> None:
    """R6."""
    known = ReasoningEcho((100 + OVERHEAD) * 10)
    for number in range(1000):
        known.remember(question(number % 3), "ann", "4", "x" * 100)
    assert known_of(known, 3) == [0, 1, 2]
    assert known._bytes == 3 * (100 + OVERHEAD)


def test_a_trace_that_would_push_out_the_others_is_not_kept() -> None:
    """R6."""
    known = remembering()
    known.remember(question(0), "ann", "4", "x" * (LIMIT // 8))
    assert known_of(known, 1) == []
    assert traces(known.restore(continued(ASKED), "ann")) == [TRACE]


def test_there_are_not_more_than_so_many(monkeypatch: pytest.MonkeyPatch) -> None:
    """R6: short traces have a bound too."""
    monkeypatch.setattr(echo, "MAX_ENTRIES", 5)
    known = ReasoningEcho(LIMIT)
    for number in range(8):
        known.remember(question(number), "ann", "4", "x")
    assert known_of(known, 8) == [3, 4, 5, 6, 7]


@pytest.mark.parametrize(("limit", "trace"), [(0, TRACE), (LIMIT, " \n"), (LIMIT, "")])
def test_nothing_is_remembered_where_it_is_off_or_there_is_nothing(limit: int, trace: str) -> None:
    """R6: 0 is off."""
    known = ReasoningEcho(limit)
    known.remember(ASKED, "ann", "4", trace)
    given = continued(ASKED)
    assert known.restore(given, "ann") is given
