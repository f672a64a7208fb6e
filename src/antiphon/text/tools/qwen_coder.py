"""`<tool_call><function=NAME><parameter=KEY>value</parameter></function></tool_call>`: Qwen3-Coder.

Decides how the values, which are bare text, become JSON on the fly: what the schema calls a
string is quoted piece by piece, anything else is read as JSON when it is complete. The plain
JSON form of the same family is read as well.
"""

from __future__ import annotations

import json
from collections.abc import Callable

from antiphon.text import scanner
from antiphon.text.tools.base import (
    SPACE,
    Arguments,
    Begin,
    Declared,
    End,
    Event,
    Reader,
    json_text,
)
from antiphon.text.tools.hermes import CLOSE, OPEN
from antiphon.text.tools.jsoncall import ListedReader

FUNCTION, FUNCTION_END = "<function=", "</function>"
PARAMETER, PARAMETER_END = "<parameter=", "</parameter>"
MAX_NAME = 256


class QwenCoder:
    """The dialect; the outer marker is left out at times."""

    name = "qwen_coder"
    openers = (OPEN, FUNCTION)
    leading: tuple[str, ...] = ()
    skip: tuple[str, ...] = ()
    inner = (CLOSE, FUNCTION_END, PARAMETER, PARAMETER_END)

    def read(self, opener: str, declared: Declared) -> Reader:
        """A reader for the text behind the opener."""
        return QwenCoderReader(declared, wrapped=opener == OPEN)


class QwenCoderReader:
    """Reads functions up to the end marker, by the step that it is at."""

    def __init__(self, declared: Declared, *, wrapped: bool) -> None:
        self.done = False
        self.broken = False
        self.rest = ""
        self.literal = 0
        self.events: list[Event] = []
        self._declared = declared
        self._wrapped = wrapped
        self._text = ""
        self._since = ""
        self._inner: ListedReader | None = None
        self._calls = 0
        self._function = ""
        self._keys: list[str] = []
        self._string = False
        self._value = ""
        self._step: Callable[[], bool] = self._opening if wrapped else self._name

    def feed(self, text: str) -> None:
        """Take the next piece of the section."""
        if self._inner is None:
            self._text += text
            self._since += text
            while self._step():
                if self.done or self.broken:
                    break
            self.rest = self._text if self.done else self._since
            self.literal = len(self._since) - len(self._text)
            text = self._since  # with the white space before the object, which may be text
        if self._inner is not None:
            self._hand_over(self._inner, text)

    def finish(self) -> None:
        """A function that is not complete is no call."""
        if self._inner is not None:
            self._inner.finish()
            self._hand_over(self._inner, "")
            return
        self.broken = bool(self._function) or not self._calls
        self.done = not self.broken
        self.rest = self._since if self.broken else ""
        self.literal = len(self.rest)

    def _hand_over(self, inner: ListedReader, text: str) -> None:
        if text:
            inner.feed(text)
        self.events += inner.events
        inner.events.clear()
        self.done, self.broken, self.rest = inner.done, inner.broken, inner.rest

    def _opening(self) -> bool:
        """Before the first function."""
        self._text = self._text.lstrip(SPACE) if not self._calls else self._text
        if self._text.startswith(("{", "[")) and not self._calls:
            self._inner = ListedReader(self._declared, (CLOSE,))
            return False
        return self._expect(FUNCTION, self._name)

    def _name(self) -> bool:
        name, end, rest = self._text.partition(">")
        if not end:
            self.broken = len(name) > MAX_NAME
            return False
        resolved = self._declared.resolve(name.strip())
        if resolved is None:
            self.broken = True
            return False
        self._function, self._keys, self._text = resolved, [], rest
        self.events += [Begin(resolved), Arguments("{")]
        self._step = self._parameters
        return True

    def _parameters(self) -> bool:
        """Between parameters."""
        text = self._text.lstrip(SPACE)
        if text.startswith(FUNCTION_END):
            self._text = text[len(FUNCTION_END) :]
            self.events += [Arguments("}"), End()]
            self._calls += 1
            self._function = ""
            self._since = self._text
            self._step = self._closing
            return True
        if text.startswith(PARAMETER):
            self._text = text[len(PARAMETER) :]
            self._step = self._key
            return True
        self.broken = not (FUNCTION_END.startswith(text) or PARAMETER.startswith(text))
        return False

    def _key(self) -> bool:
        key, end, rest = self._text.partition(">")
        if not end:
            self.broken = len(key) > MAX_NAME
            return False
        key = key.strip()
        if key in self._keys:
            self.broken = True
            return False
        comma = ", " if self._keys else ""
        self._keys.append(key)
        types = self._declared.types(self._function, key)
        self._string = types == {"string"}
        self._value = ""
        self.events.append(Arguments(f"{comma}{_quoted(key)}: " + ('"' if self._string else "")))
        self._text = rest
        self._step = self._line
        return True

    def _line(self) -> bool:
        """The line break that stands before a value is no part of it."""
        if not self._text:
            return False
        self._text = self._text.removeprefix("\n")
        self._step = self._inside
        return True

    def _inside(self) -> bool:
        """Inside a value; the line break before its end is no part of it."""
        ends = ("\n" + PARAMETER_END, PARAMETER_END)
        found = scanner.find(self._text, ends)
        if found is None:
            keep = scanner.held(self._text, ends)
            self._write(self._text[: len(self._text) - keep])
            self._text = self._text[len(self._text) - keep :]
            return False
        self._write(self._text[: found.at])
        self._text = self._text[found.at + len(found.marker) :]
        self.events.append(Arguments('"' if self._string else self._typed()))
        self._step = self._parameters
        return True

    def _typed(self) -> str:
        return json_text(self._declared.value(self._function, self._keys[-1], self._value))

    def _write(self, text: str) -> None:
        if not text:
            return
        if self._string:
            self.events.append(Arguments(_quoted(text)[1:-1]))
        else:
            self._value += text

    def _closing(self) -> bool:
        """Behind a function: the end marker, another function, or something else."""
        if not self._wrapped:
            self.done = True
            return False
        text = self._text.lstrip(SPACE)
        if text.startswith(CLOSE):
            self._text = text[len(CLOSE) :]
            self.done = True
            return False
        if text.startswith(FUNCTION):
            self._step = self._opening
            self._text = text
            return True
        if not (CLOSE.startswith(text) or FUNCTION.startswith(text)):
            self.done = True
        return False

    def _expect(self, marker: str, step: Callable[[], bool]) -> bool:
        if self._text.startswith(marker):
            self._text = self._text[len(marker) :]
            self._step = step
            return True
        self.broken = not marker.startswith(self._text)
        return False


def _quoted(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)
