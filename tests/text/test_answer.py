"""Properties of the answer parser for every dialect, and cases from bug reports.

Answers are made up in a family's written form (`forms.py`), cut anywhere, and must come out
as what was written. Single cases are in `cases/`.
"""

from __future__ import annotations

import json
import random
import re
from collections.abc import Sequence
from dataclasses import dataclass

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from antiphon.engine.types import (
    CallArguments,
    CallEnd,
    CallStart,
    Delta,
    Text,
    TokenLogprob,
    ToolSpec,
)
from antiphon.text.answer import AnswerParser
from antiphon.text.profiles import DIALECTS, FORMATS
from antiphon.text.tools.base import Declared
from tests.text.forms import FORMS, Calls, Form
from tests.text.items import Item, collect, logprob, parse, split, splits

WEATHER = {
    "type": "object",
    "properties": {
        "city": {"type": "string"},
        "days": {"type": "integer"},
        "o": {"type": "object"},
    },
}
DECLARED = Declared.of([ToolSpec("get_weather", parameters=WEATHER), ToolSpec("f")])
NAMES = st.sampled_from(["get_weather"])
WRITTEN = [
    pytest.param(name, form, id=f"{name}-{index}")
    for name, forms in FORMS.items()
    for index, form in enumerate(forms)
]
# No character of these ends a marker, so that none can come about by chance.
SAID = st.text(st.sampled_from("ab é東😀.!\n<|_="), max_size=12)
THOUGHT = st.text(st.sampled_from("ab é東😀.!\n<_="), min_size=1, max_size=8)


@dataclass
class Answer:
    """A written answer, what it means, and where its visible text stands."""

    text: str
    items: list[Item]
    visible: list[range]


def _write(form: Form, thought: str | None, said: str, calls: Calls, after: str) -> Answer:
    answer = Answer("", [], [])
    if thought is not None:
        thinking = FORMATS[form.thinking]
        answer.text += f"{thinking.open}{thought}{thinking.closes[0]}"
        if thought.strip():
            answer.items.append(Item("reasoning", thought.strip()))
    if said.strip() and form.text_first:
        _say(answer, form.said, said, bounded=bool(calls))
    if calls:
        answer.text += form.write(calls)
        answer.items += [Item("call", json.dumps(arguments), name) for name, arguments in calls]
        if after.strip():
            _say(answer, "", after, bounded=False)
    return answer


def _say(answer: Answer, before: str, text: str, *, bounded: bool) -> None:
    """White space next to markup belongs to the markup."""
    shown = text.lstrip() if answer.text or before else text
    shown = shown.rstrip() if bounded else shown
    start = len(answer.text) + len(before) + text.index(shown)
    answer.text += before + text
    answer.items.append(Item("text", shown))
    answer.visible.append(range(start, start + len(shown)))


def _answers(form: Form) -> st.SearchStrategy[Answer]:
    calls = st.lists(st.tuples(NAMES, form.arguments), max_size=3)
    thought = st.none() | THOUGHT
    # Only text that does not go on in the form of a call is ordinary text behind one.
    after = SAID.filter(lambda text: not text.lstrip().startswith(("<", "|", "=")))
    return st.builds(_write, st.just(form), thought, SAID, calls, after)


def _parser(name: str, form: Form, declared: Declared = DECLARED) -> AnswerParser:
    return AnswerParser(dialect=DIALECTS[name], thinking=FORMATS[form.thinking], declared=declared)


def _same(found: Sequence[Item], expected: Sequence[Item]) -> bool:
    """Arguments are compared as JSON."""
    return [
        (i.kind, i.name, json.loads(i.text) if i.kind == "call" else i.text) for i in found
    ] == [(i.kind, i.name, json.loads(i.text) if i.kind == "call" else i.text) for i in expected]


def test_every_dialect_has_a_written_form() -> None:
    assert FORMS.keys() == DIALECTS.keys()


@pytest.mark.parametrize(("name", "form"), WRITTEN)
@settings(max_examples=25, deadline=None)
@given(data=st.data(), seed=st.integers(0, 10**6))
def test_what_was_written_comes_out_however_it_is_split(
    name: str, form: Form, data: st.DataObject, seed: int
) -> None:
    """T5, O10, R1: text, reasoning and calls are the same for any split, and whole."""
    answer = data.draw(_answers(form))
    choose = random.Random(seed)
    cuts = choose.sample(range(len(answer.text) + 1), min(len(answer.text), 8))
    for pieces in ([answer.text], list(answer.text), split(answer.text, cuts)):
        found = parse(_parser(name, form), pieces)
        assert _same(found, answer.items), (pieces, found)


@pytest.mark.parametrize(("name", "form"), WRITTEN)
@settings(max_examples=12, deadline=None)
@given(data=st.data(), seed=st.integers(0, 10**6))
def test_log_probabilities_are_those_of_tokens_that_begin_in_visible_text(
    name: str, form: Form, data: st.DataObject, seed: int
) -> None:
    """O10, C14: in order, none twice, none of markup."""
    answer = data.draw(_answers(form))
    choose = random.Random(seed)
    cuts = choose.sample(range(len(answer.text) + 1), len(answer.text) // 3)
    tokens = split(answer.text, cuts)
    parser = _parser(name, form)
    deltas: list[Delta] = []
    expected: list[TokenLogprob] = []
    start = 0
    for index, token in enumerate(tokens):
        known = logprob(f"{index}")
        deltas += parser.feed(token, (known,))
        if token and any(start in place for place in answer.visible):
            expected.append(known)
        start += len(token)
    deltas += parser.end()
    found = [known for delta in deltas if isinstance(delta, Text) for known in delta.logprobs]
    assert [known for known in found if tokens[int(known.token)]] == expected


@pytest.mark.parametrize("name", DIALECTS)
@settings(max_examples=50, deadline=None)
@given(data=st.data(), seed=st.integers(0, 10**6))
def test_nothing_is_lost_where_nothing_can_be_called(
    name: str, data: st.DataObject, seed: int
) -> None:
    """T6: what is no call of a declared function is text; only `skip` markers go."""
    dialect = DIALECTS[name]
    markers = [*dialect.openers, *dialect.leading, *dialect.inner, *dialect.skip]
    words = [*markers, "x", " ", "\n", "f", "{", "}", "[", "]", '"', '{"name":"f"', "<", "|>", "é"]
    text = "".join(data.draw(st.lists(st.sampled_from(words), max_size=10)))
    choose = random.Random(seed)
    cuts = choose.sample(range(len(text) + 1), min(len(text), 6))
    results = [
        parse(AnswerParser(dialect=dialect), pieces)
        for pieces in ([text], list(text), split(text, cuts))
    ]
    assert results[0] == results[1] == results[2]
    said = "".join(item.text for item in results[0])
    assert all(item.kind == "text" for item in results[0])
    if not dialect.skip:
        assert said == text
    else:
        known = sorted((*dialect.openers, *dialect.skip), key=len, reverse=True)
        pattern = re.compile("|".join(map(re.escape, known)))
        kept = pattern.sub(lambda m: "" if m[0] in dialect.skip else m[0], text)
        assert "".join(said.split()) == "".join(kept.split())
    if not any(marker in text for marker in markers if marker):
        assert said == text


@pytest.mark.parametrize("name", DIALECTS)
@settings(max_examples=25, deadline=None)
@given(data=st.data(), cut=st.booleans(), seed=st.integers(0, 10**6))
def test_broken_calls_give_the_same_items_for_every_split(
    name: str, data: st.DataObject, cut: bool, seed: int
) -> None:
    """T6, O10: also where an answer is damaged or cut off, arguments of calls are valid JSON."""
    form = data.draw(st.sampled_from(FORMS[name]))
    text = data.draw(_answers(form)).text
    at = data.draw(st.integers(0, len(text)))
    length = data.draw(st.integers(0, 6))
    damage = data.draw(st.sampled_from(["", "x", "}", '"', ",", *DIALECTS[name].inner]))
    text = text[:at] + damage + ("" if cut else text[at + length :])
    choose = random.Random(seed)
    cuts = choose.sample(range(len(text) + 1), min(len(text), 6))
    results = [
        parse(_parser(name, form), pieces, cut=cut)
        for pieces in ([text], list(text), split(text, cuts))
    ]
    assert results[0] == results[1] == results[2]
    for item in results[0]:
        if item.kind == "call":
            assert isinstance(json.loads(item.text), dict)


def _deltas(parser: AnswerParser, pieces: Sequence[str]) -> list[Delta]:
    deltas = [delta for piece in pieces for delta in parser.feed(piece)]
    return [*deltas, *parser.end()]


def _hermes() -> AnswerParser:
    return AnswerParser(dialect=DIALECTS["hermes"], declared=DECLARED)


def _call(arguments: str, name: str = "get_weather") -> str:
    return f'<tool_call>{{"name":"{name}","arguments":{arguments}}}</tool_call>'


def test_two_parallel_calls_are_two_items() -> None:
    """B041"""
    text = _call('{"city":"Rome"}') + "\n" + _call('{"city":"Oslo"}')
    for pieces in splits(text):
        assert parse(_hermes(), pieces) == [
            Item("call", '{"city":"Rome"}', "get_weather"),
            Item("call", '{"city":"Oslo"}', "get_weather"),
        ]


def test_no_markup_of_a_call_is_in_a_text_delta() -> None:
    """B043, O10: also where the marker is split over pieces."""
    pieces = ["Sure.", "\n<to", "ol_call>", '{"name":"get_weather","arg']
    pieces += ['uments":{"city":"Boston"}}', "</tool", "_call>"]
    deltas = _deltas(_hermes(), pieces)
    assert [delta.text for delta in deltas if isinstance(delta, Text)] == ["Sure."]
    assert [item.kind for item in collect(deltas)] == ["text", "call"]
    assert _deltas(_hermes(), ["<to", "ol"]) == [Text("<tool")]


def test_a_call_is_never_swallowed() -> None:
    """B044, T6: it is an item, or its raw text is."""
    call = Item("call", '{"city":"X"}', "get_weather")
    assert parse(_hermes(), [_call('{"city":"X"}')]) == [call]
    bad = "<tool_call>{bad</tool_call>"
    assert parse(_hermes(), [bad]) == [Item("text", bad)]


def test_arguments_come_as_increments_while_they_are_written() -> None:
    """B046, T5: the pieces of one call put together are its arguments."""
    parts = ['{"ci', 'ty":', '"Rome"', "}"]
    parser = _hermes()
    parser.feed('<tool_call>{"name": "get_weather", "arguments": ')
    shown = [parser.feed(part) for part in parts]
    assert shown == [
        [CallStart("get_weather"), CallArguments('{"ci')],
        [CallArguments('ty":')],
        [CallArguments('"Rome"')],
        [CallArguments("}")],
    ]
    assert parser.feed("}</tool_call>") == [CallEnd()]


@pytest.mark.parametrize("arguments", ['{"city":"Rome"}', "{}", "null", '""'])
def test_a_call_in_one_piece_has_arguments_and_an_end(arguments: str) -> None:
    """B047, T2: `{}` for none."""
    start, middle, end = _deltas(_hermes(), [_call(arguments)])
    expected = arguments if arguments.startswith("{") else "{}"
    assert (start, middle, end) == (
        CallStart("get_weather"),
        CallArguments(expected),
        CallEnd(),
    )


def test_a_cut_in_the_middle_of_thinking_leaves_reasoning_only() -> None:
    """B071, R2, R3: nothing of the trace is in the text."""
    parser = AnswerParser(thinking=FORMATS["think"], primed=True)
    pieces = ["long ", "thought ", "without end </thi"]
    assert parse(parser, pieces, cut=True) == [Item("reasoning", "".join(pieces))]


def test_repeated_thinking_is_reasoning_each_time() -> None:
    """B072, R1: with the tags split over pieces."""
    for pieces in splits("<think>r1</think>A<think>r2</think>B"):
        assert parse(AnswerParser(thinking=FORMATS["think"]), pieces) == [
            Item("reasoning", "r1"),
            Item("text", "A"),
            Item("reasoning", "r2"),
            Item("text", "B"),
        ]


@pytest.mark.parametrize("dialect", [None, "hermes"])
def test_think_tags_of_a_model_that_does_not_think_are_text(dialect: str | None) -> None:
    """B073"""
    text = "Use `<think>draft</think>` here."
    for pieces in splits(text):
        parser = AnswerParser(dialect=DIALECTS[dialect] if dialect else None)
        assert parse(parser, pieces) == [Item("text", text)]


def test_reasoning_tokens_are_counted() -> None:
    """R4: the tokens of the trace and its end marker, none of the text."""
    parser = AnswerParser(thinking=FORMATS["think"])
    for piece in ["<think>", "a ", "b", "</think>", "\n\n", "c", " d"]:
        parser.feed(piece)
    assert parser.reasoning_tokens == 4
    primed = AnswerParser(thinking=FORMATS["think"], primed=True)
    primed.feed("a b", tokens=2)
    assert primed.reasoning_tokens == 2


def test_nothing_is_read_behind_the_last_wanted_call() -> None:
    """T4"""
    parser = AnswerParser(dialect=DIALECTS["hermes"], declared=DECLARED, max_calls=1)
    assert parse(parser, [_call("{}", "f"), _call("{}", "f"), "text"]) == [Item("call", "{}", "f")]
    assert parser.satisfied


def test_a_token_without_text_keeps_its_log_probability_for_the_next_one() -> None:
    """C14: a character of several tokens shows with the last one."""
    first, second = logprob("1"), logprob("2")
    for dialect in (None, DIALECTS["hermes"]):
        parser = AnswerParser(dialect=dialect)
        assert parser.feed("", (first,)) == []
        assert parser.feed("😀", (second,)) == [Text("😀", (first, second))]


def test_a_forced_call_that_is_cut_before_its_name_leaves_nothing() -> None:
    """T3: its markup is no answer."""
    for forced in (True, False):
        parser = AnswerParser(dialect=DIALECTS["hermes"], declared=DECLARED, forced=forced)
        found = parse(parser, ['<tool_call>\n{"na'], cut=True)
        assert found == ([] if forced else [Item("text", '<tool_call>\n{"na')])


def test_half_a_surrogate_pair_in_arguments_stays_an_escape() -> None:
    """O10: every delta can be sent as UTF-8."""
    text = '<tool_call>f<arg_key>o</arg_key><arg_value>{"a": "\\ud800"}</arg_value></tool_call>'
    parser = AnswerParser(dialect=DIALECTS["glm"], declared=DECLARED)
    (item,) = parse(parser, [text])
    assert item.text == '{"o": {"a": "\\ud800"}}'


def test_sections_inside_of_given_back_ones_are_not_lost() -> None:
    """T6: a section that ends with the answer may hide another one."""
    text = "<|tool_call>call:f{a:<|tool_call>call:f{b:"
    parser = AnswerParser(dialect=DIALECTS["gemma"], declared=DECLARED)
    assert parse(parser, [text]) == [Item("text", text)]
