"""Runs the case files in `cases/`, one folder per dialect (contract O10, R1-R3, T5, T6).

Decides how such a file is read. To add a case, write a text file: settings, one a line (see
`_parser`), a line `--- input`, what the model writes, a line `--- items`, and what must come
out, one item a line: `reasoning: …`, `text: …`, `call NAME {…}`, `incomplete call NAME …`. An
item's text may be given as a JSON string, for white space in it.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from pathlib import Path

import pytest

from antiphon.engine.types import ToolSpec
from antiphon.text.answer import AnswerParser
from antiphon.text.profiles import DIALECTS, FORMATS
from antiphon.text.tools.base import Declared
from tests.text.items import Item, parse, splits

CASES = Path(__file__).parent / "cases"
FILES = sorted(CASES.glob("*/*.txt"))
SETTINGS = {"dialect", "thinking", "primed", "finish", "tools", "most", "skip"}


def _read(file: Path) -> tuple[dict[str, str], str, list[Item]]:
    head, _, rest = file.read_text("utf-8").partition("--- input\n")
    text, _, items = rest.partition("\n--- items\n")
    settings = dict(re.split(r":\s*", line, maxsplit=1) for line in head.splitlines() if line)
    assert settings.keys() <= SETTINGS, f"unknown setting in {file.name}"
    return settings, text, [_item(line) for line in items.splitlines() if line]


def _item(line: str) -> Item:
    if match := re.fullmatch(r"((?:incomplete )?call) (\S+) ?(.*)", line):
        return Item(match[1], match[3], match[2])
    kind, _, text = line.partition(": ")
    return Item(kind, json.loads(text) if text.startswith('"') else text)


def _tools(text: str) -> Declared:
    """`get_weather(city:string, days:integer), f()`; a type may be a choice: `string/null`."""
    tools = []
    for name, parameters in re.findall(r"([\w.\-]+)\((.*?)\)", text):
        typed = re.findall(r"([\w\-]+):([\w/]+)", parameters)
        properties = {key: {"type": kind.split("/")} for key, kind in typed}
        tools.append(ToolSpec(name, parameters={"type": "object", "properties": properties}))
    return Declared.of(tools)


def _parser(settings: Mapping[str, str]) -> AnswerParser:
    """`dialect` and `thinking` name formats; `primed: yes` says that the prompt opened the
    trace, `tools` which functions there are, `most` how many calls are wanted."""
    dialect, thinking = settings.get("dialect"), settings.get("thinking")
    return AnswerParser(
        dialect=DIALECTS[dialect] if dialect else None,
        thinking=FORMATS[thinking] if thinking else None,
        declared=_tools(settings.get("tools", "get_weather(city:string, days:integer), f()")),
        primed=settings.get("primed") == "yes",
        max_calls=int(settings["most"]) if "most" in settings else None,
    )


def _known(items: list[Item]) -> list[Item | tuple[str, str, object]]:
    """Arguments of complete calls are compared as JSON, everything else as text."""
    return [
        (item.kind, item.name, json.loads(item.text)) if item.kind == "call" else item
        for item in items
    ]


@pytest.mark.parametrize("file", FILES, ids=lambda file: f"{file.parent.name}/{file.stem}")
def test_the_items_of_a_case_do_not_depend_on_how_it_is_split(file: Path) -> None:
    settings, text, expected = _read(file)
    cut = settings.get("finish") == "length"
    for pieces in splits(text):
        assert _known(parse(_parser(settings), pieces, cut=cut)) == _known(expected), pieces


def test_every_dialect_has_cases() -> None:
    for name in DIALECTS:
        assert len([file for file in FILES if file.parent.name == name]) >= 3, name
