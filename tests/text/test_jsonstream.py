"""The piecewise JSON reader agrees with the standard library, and tells where a value ends."""

from __future__ import annotations

import json
import random
from collections.abc import Iterable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from antiphon.text.jsonstream import MAX_DEPTH, JsonReader, NotJson
from tests.text.items import split, splits

VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=12,
)
# A number or a literal has no end of its own.
BOUNDED = st.dictionaries(st.text(), VALUES, max_size=4) | st.lists(VALUES, max_size=4) | st.text()


def _read(pieces: Iterable[str]) -> JsonReader:
    reader = JsonReader()
    for piece in pieces:
        if reader.feed(piece) < len(piece):
            break
    return reader


def _verdict(pieces: Iterable[str]) -> tuple[str, str]:
    """What was taken, and whether it is complete, open, or wrong."""
    reader = JsonReader()
    try:
        for piece in pieces:
            reader.feed(piece)
    except NotJson:
        return reader.text, "wrong"
    return reader.text, "complete" if reader.done else "open"


@given(BOUNDED, st.booleans(), st.sampled_from([None, 1]), st.sampled_from(["", "x", "}", " "]))
def test_a_value_is_taken_to_its_end_and_no_further(
    value: Any, escaped: bool, indent: int | None, rest: str
) -> None:
    text = json.dumps(value, ensure_ascii=escaped, indent=indent)
    reader = JsonReader()
    assert reader.feed(text + rest) == len(text)
    assert reader.done
    assert reader.text == text


@given(st.dictionaries(st.text(), VALUES, max_size=4), st.integers(0, 10**6))
def test_members_are_where_the_text_says_however_it_is_split(
    value: dict[str, Any], seed: int
) -> None:
    """T5"""
    text = json.dumps(value)
    choose = random.Random(seed)
    cuts = choose.sample(range(len(text) + 1), min(5, len(text)))
    for pieces in (split(text, cuts), list(text)):
        reader = _read(pieces)
        found = {m.key: json.loads(text[m.start : m.end]) for m in reader.members}
        assert found == value


@given(
    st.lists(
        st.sampled_from([*'{}[]:,"\\ \n', "0", "-", "1.5e3", "tru", "true", "null", '"k"', "\\u00"])
    ).map("".join),
    st.integers(0, 10**6),
)
def test_the_verdict_is_that_of_the_standard_library(text: str, seed: int) -> None:
    choose = random.Random(seed)
    verdict = _verdict([text])
    assert _verdict(split(text, choose.sample(range(len(text) + 1), len(text) // 2))) == verdict
    start = text.lstrip(" \n")
    if start.startswith(("{", "[", '"')):
        try:
            end = json.JSONDecoder().raw_decode(start)[1]
        except ValueError:
            assert verdict[1] != "complete"
        else:
            assert verdict == (text[: len(text) - len(start) + end], "complete")


@pytest.mark.parametrize(
    "text",
    [
        "{a",
        "[1,]",
        '{"a" 1',
        '{"a":1,}',
        "[01]",
        "[1.]",
        "[nul,",
        '["\n',
        '["\\x',
        "[NaN",
        "]",
        "1",
    ],
)
def test_the_first_wrong_character_is_refused(text: str) -> None:
    for pieces in splits(text, count=5):
        assert _verdict(pieces)[1] == "wrong"


def test_depth_is_bounded() -> None:
    assert _verdict(["[" * MAX_DEPTH])[1] == "open"
    assert _verdict(["[" * (MAX_DEPTH + 1)])[1] == "wrong"
