"""The items of a model's answer, as the tests of the text layer compare them.

Decides only how deltas are put together: neighbours of one kind become one item. Knows no
wire and no event.
"""

from __future__ import annotations

import random
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

from antiphon.engine.types import (
    CallArguments,
    CallEnd,
    CallStart,
    Delta,
    Reasoning,
    Text,
    TokenLogprob,
)
from antiphon.text.answer import AnswerParser


@dataclass
class Item:
    """`kind` is text, reasoning, call, or incomplete call; `name` belongs to calls."""

    kind: str
    text: str
    name: str = ""


def collect(deltas: Iterable[Delta]) -> list[Item]:
    """The items of a sequence of deltas. A call is complete when its end says so."""
    items: list[Item] = []
    for delta in deltas:
        match delta:
            case Text() | Reasoning():
                kind = "text" if isinstance(delta, Text) else "reasoning"
                if items and items[-1].kind == kind:
                    items[-1].text += delta.text
                else:
                    items.append(Item(kind, delta.text))
            case CallStart():
                items.append(Item("incomplete call", "", delta.name))
            case CallArguments():
                items[-1].text += delta.text
            case CallEnd(complete=True):
                items[-1].kind = "call"
            case _:
                pass
    return items


def parse(parser: AnswerParser, pieces: Iterable[str], *, cut: bool = False) -> list[Item]:
    """The items that a parser finds in these pieces."""
    deltas: list[Delta] = []
    for piece in pieces:
        deltas += parser.feed(piece)
    return collect([*deltas, *parser.end(cut=cut)])


def split(text: str, cuts: Sequence[int]) -> list[str]:
    """The text in pieces, cut at these places."""
    edges = [0, *sorted(cuts), len(text)]
    return [text[start:end] for start, end in pairwise(edges)]


def splits(text: str, seed: int = 0, count: int = 50) -> Iterator[list[str]]:
    """Ways to cut a text: not at all, everywhere, once anywhere, and some at random."""
    yield [text]
    yield list(text)
    yield from (split(text, [at]) for at in range(1, len(text)))
    choose = random.Random(seed)
    for _ in range(count):
        yield split(text, choose.sample(range(len(text) + 1), min(len(text), choose.randint(1, 9))))


def logprob(token: str) -> TokenLogprob:
    """A token with some probability."""
    return TokenLogprob(token, -0.5, tuple(token.encode()))
