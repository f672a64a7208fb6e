"""Markers in a stream of text: found wherever they are cut, and nothing else is held back."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from antiphon.text import scanner

MARKERS = ("<think>", "<|end|>", "<|end|><|start|>", "a(b)", "[")
TEXT = st.lists(st.sampled_from([*MARKERS, "<", "think", "<|", "end|>", "a", "(b", "x", "é"]))


@given(TEXT.map("".join), st.integers(0, 10))
def test_the_earliest_marker_is_found_and_of_several_the_longest(text: str, start: int) -> None:
    expected = min(
        (
            (text.find(marker, start), -len(marker), marker)
            for marker in MARKERS
            if text.find(marker, start) >= 0
        ),
        default=None,
    )
    found = scanner.find(text, MARKERS, start)
    assert (None if found is None else (found.at, -len(found.marker), found.marker)) == expected


@given(TEXT.map("".join))
def test_exactly_the_longest_beginning_of_a_marker_is_held(text: str) -> None:
    """O10"""
    beginnings = [marker[:end] for marker in MARKERS for end in range(1, len(marker))]
    expected = max((len(start) for start in beginnings if text.endswith(start)), default=0)
    assert scanner.held(text, MARKERS) == expected


@pytest.mark.parametrize("text", ["", "<think>"])
def test_without_markers_nothing_is_found_or_held(text: str) -> None:
    assert scanner.find(text, ()) is None
    assert scanner.held(text, ()) == 0
