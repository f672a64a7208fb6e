"""A model's raw text becomes deltas: reasoning, visible text, calls.

Decides what is markup and what is said (contract O10, R1-R4, T5, T6). The result depends on
the text only, never on how it was split into pieces. White space next to markup belongs to
the markup. Knows no engine and no event.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from antiphon.engine.types import (
    CallArguments,
    CallEnd,
    CallStart,
    Delta,
    Reasoning,
    Text,
    TokenLogprob,
)
from antiphon.text import scanner
from antiphon.text.tools.base import Arguments, Begin, Declared, Dialect, End, Reader


@dataclass(frozen=True, slots=True)
class Thinking:
    """The markers around a reasoning trace."""

    open: str
    closes: tuple[str, ...]


class AnswerParser:
    """Parses one answer.

    `thinking` and `dialect` are None where the model has no trace, or where nothing may be
    called. `skip` are markers without meaning. `primed` says that the prompt has already
    opened the trace (R2). `forced` says that a grammar allows nothing but calls. After
    `max_calls` calls `satisfied` is set, and the rest of the answer is of no interest.
    """

    def __init__(
        self,
        *,
        thinking: Thinking | None = None,
        dialect: Dialect | None = None,
        declared: Declared | None = None,
        skip: Sequence[str] = (),
        primed: bool = False,
        max_calls: int | None = None,
        forced: bool = False,
    ) -> None:
        self.satisfied = False
        self.reasoning_tokens = 0
        self._thinking = thinking
        self._dialect = dialect
        self._declared = declared or Declared()
        self._skip = (*skip, *(dialect.skip if dialect is not None else ()))
        self._closes = thinking.closes if thinking is not None else ()
        self._markers = (
            *self._skip,
            *((thinking.open,) if thinking is not None else ()),
            *(dialect.openers if dialect is not None else ()),
        )
        self._max_calls = max_calls
        self._forced = forced
        self._mode: Literal["text", "reasoning", "call"] = "text"
        self._buffer = ""
        self._space = ""
        self._start = True
        self._behind_marker = False
        self._reader: Reader | None = None
        self._before = ""
        self._opener = ""
        self._calls = 0
        self._begun = False
        self._ended = False
        self._total = 0
        self._tokens: deque[tuple[int, tuple[TokenLogprob, ...]]] = deque()
        self._deltas: list[Delta] = []
        self._plain = thinking is None and dialect is None and not skip
        if primed and thinking is not None:
            self._mode, self._behind_marker = "reasoning", True

    def feed(
        self, text: str, logprobs: tuple[TokenLogprob, ...] = (), tokens: int = 1
    ) -> list[Delta]:
        """The deltas of the next piece, which consists of so many tokens."""
        if self.satisfied:
            return []
        if logprobs:
            self._tokens.append((self._total, logprobs))
        if self._plain:
            if text:
                self._total += len(text)
                self._emit_text(text, self._total - len(text))
            return self._flush()
        thought = self._mode == "reasoning"
        self._total += len(text)
        self._buffer += text
        self._advance()
        if thought or self._mode == "reasoning":
            self.reasoning_tokens += tokens
        return self._flush()

    def end(self, *, cut: bool = False) -> list[Delta]:
        """The deltas that were held back. `cut` says that a limit ended the generation.

        A call that was cut off stays as it is, and the beginning of what is certain to become
        a call says nothing; one that the model left unfinished is text.
        """
        if self.satisfied:
            return []
        self._ended = True
        self._advance()
        # What is given back by one section may open another.
        while self._reader is not None and not (cut and (self._begun or self._forced)):
            self._reader.finish()
            self._read_section()
            self._advance()
        if self._mode != "call":
            rest, self._buffer = self._buffer, ""
            self._say(rest)
            if self._mode == "text" and self._space and not self._behind_marker:
                self._emit_text(self._space, self._total - len(self._space))
            self._space = ""
        return self._flush()

    def _flush(self) -> list[Delta]:
        deltas, self._deltas = self._deltas, []
        return deltas

    def _advance(self) -> None:
        """Read as far as the buffer allows."""
        while self._buffer and not self.satisfied:
            if self._mode == "call":
                assert self._reader is not None
                text, self._buffer = self._buffer, ""
                self._reader.feed(text)
                self._read_section()
            elif not self._step():
                return

    def _step(self) -> bool:
        """Up to the next marker. False where more text is needed."""
        if self._mode == "text" and self._start and (led := self._lead()) is not None:
            return led
        markers = self._closes if self._mode == "reasoning" else self._markers
        found = scanner.find(self._buffer, markers)
        keep = 0 if self._ended else scanner.held(self._buffer, markers)
        # A longer marker may begin where one was found, or before.
        if found is None or keep >= len(self._buffer) - found.at:
            said = self._buffer[: len(self._buffer) - keep]
            self._buffer = self._buffer[len(said) :]
            self._say(said, behind=keep)
            return False
        said = self._buffer[: found.at]
        self._buffer = self._buffer[found.at + len(found.marker) :]
        self._say(said, behind=len(self._buffer) + len(found.marker))
        self._enter(found.marker)
        return True

    def _lead(self) -> bool | None:
        """A call that is the whole answer begins with its first character.

        True where one begins, False where more text is needed to tell.
        """
        leading = self._dialect.leading if self._dialect is not None else ()
        text = self._buffer.lstrip()
        if not (leading and text):
            return None
        if any(text.startswith(marker) or marker.startswith(text) for marker in self._markers):
            return None
        for opener in leading:
            if text.startswith(opener):
                space = self._space + self._buffer[: len(self._buffer) - len(text)]
                self._space, self._buffer = "", text[len(opener) :]
                self._open_section(opener, "" if self._behind_marker else space)
                return True
        waits = not self._ended and any(opener.startswith(text) for opener in leading)
        return False if waits else None

    def _enter(self, marker: str) -> None:
        before, self._space, self._behind_marker = self._space, "", True
        if self._mode == "reasoning":
            self._mode = "text"
        elif self._thinking is not None and marker == self._thinking.open:
            self._mode = "reasoning"
        elif marker not in self._skip:
            self._open_section(marker, before)

    def _open_section(self, opener: str, before: str) -> None:
        assert self._dialect is not None
        self._mode, self._start, self._begun = "call", False, False
        self._before, self._opener = before, opener
        self._reader = self._dialect.read(opener, self._declared)
        if opener in self._dialect.leading:
            self._opener = ""
            self._reader.feed(opener)
            self._read_section()

    def _read_section(self) -> None:
        reader = self._reader
        assert reader is not None
        for event in reader.events:
            match event:
                case Begin():
                    self._begun = True
                    self._deltas.append(CallStart(event.name))
                case Arguments():
                    self._deltas.append(CallArguments(event.text))
                case End():
                    self._begun, self._before, self._opener = False, "", ""
                    self._calls += 1
                    self._deltas.append(CallEnd())
                    if self._calls == self._max_calls:
                        self.satisfied, self._reader = True, None
                        return
        reader.events.clear()
        if not (reader.done or reader.broken):
            return
        self._reader, self._mode, self._behind_marker = None, "text", True
        self._buffer = reader.rest + self._buffer
        if reader.broken:
            self._give_back(reader.literal)

    def _give_back(self, literal: int) -> None:
        """What turned out to be no call is text: its marker at once, the rest is read again."""
        if self._begun:
            self._begun = False
            self._deltas.append(CallEnd(complete=False))
        text = self._opener + self._buffer[:literal]
        self._buffer = self._buffer[literal:]
        self._behind_marker = not (self._before or self._opener) and self._calls > 0
        self._space, self._before, self._opener = self._before, "", ""
        self._say(text, behind=len(self._buffer))

    def _say(self, text: str, behind: int = 0) -> None:
        """Say text that ends `behind` characters before the end of what was fed."""
        if self._behind_marker:
            text = text.lstrip()
        if not text:
            return
        spoken = text.rstrip()
        if spoken:
            self._behind_marker = False
            whole = self._space + spoken
            end = self._total - behind - (len(text) - len(spoken))
            self._space = text[len(spoken) :]
            if self._mode == "reasoning":
                self._deltas.append(Reasoning(whole))
            else:
                self._emit_text(whole, end - len(whole))
        else:
            self._space += text

    def _emit_text(self, text: str, at: int) -> None:
        """Visible text from this place of the answer, with the tokens that begin in it."""
        self._start = False
        found: list[TokenLogprob] = []
        while self._tokens and self._tokens[0][0] < at + len(text):
            start, logprobs = self._tokens.popleft()
            if start >= at:
                found += logprobs
        self._deltas.append(Text(text, tuple(found)))
