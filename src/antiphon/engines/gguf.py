"""What a GGUF file says about its model: template, names, context length, control tokens.

Decides which metadata is worth reading and refuses files that cannot be a model, in one line.
Reads the header only and never a weight; knows nothing of the engine that will load it.
Format: the GGUF specification of the ggml project, versions 2 and 3, little-endian.
"""

from __future__ import annotations

import mmap
import struct
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

# Limits far above any real model, so that a crafted header cannot keep us busy.
MAX_KEYS = 65_536
MAX_TENSORS = 1_000_000
MAX_ELEMENTS = 4_000_000

_UNKNOWN, _CONTROL, _USER_DEFINED = 2, 3, 4
_STRING, _ARRAY = 8, 9
# Value type of the format -> struct code.
_SCALARS = {
    0: "B",
    1: "b",
    2: "H",
    3: "h",
    4: "I",
    5: "i",
    6: "f",
    7: "?",
    10: "Q",
    11: "q",
    12: "d",
}
_TOKENS = "tokenizer.ggml.tokens"
_TYPES = "tokenizer.ggml.token_type"


class GgufError(Exception):
    """The file is not a readable GGUF model. The message is one line for the operator."""


@dataclass(frozen=True, slots=True)
class Gguf:
    """Metadata of a model file.

    `context_length` is in tokens, 0 where the file does not say. `add_bos` is None where the
    tokenizer's own default counts. `control_tokens` have a meaning of their own wherever they
    are parsed (`<|im_end|>`); `user_defined_tokens` are whole tokens by the model's choice
    (`<think>`, but also runs of spaces).
    """

    architecture: str
    name: str
    context_length: int
    chat_template: str | None
    bos_id: int | None
    eos_id: int | None
    bos_token: str
    eos_token: str
    add_bos: bool | None
    control_tokens: tuple[str, ...]
    user_defined_tokens: tuple[str, ...]


def read(path: Path) -> Gguf:
    """The metadata of the model file at `path`.

    Raises:
        GgufError: there is no such file, it is not GGUF, or it is cut off.
    """
    try:
        with path.open("rb") as file:
            if path.stat().st_size < 24:
                raise GgufError(f"{path} is not a GGUF file: it is too short")
            with mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
                return _parse(_Reader(data), path)
    except OSError as error:
        raise GgufError(f"{path} cannot be read: {error.strerror or error}") from None
    except _CutOff:
        raise GgufError(f"{path} is cut off or damaged: fetch it again") from None


class _CutOff(Exception):
    """The file ends before its header says so, or claims a size that cannot be."""


class _Reader:
    """A position in the file; every read is checked against its end."""

    def __init__(self, data: mmap.mmap) -> None:
        self._data = data
        self.size = len(data)
        self.position = 0

    def scalar(self, code: str) -> Any:
        size = struct.calcsize("<" + code)
        self._need(size)
        (value,) = struct.unpack_from("<" + code, self._data, self.position)
        self.position += size
        return value

    def raw(self) -> bytes:
        length = self.scalar("Q")
        self._need(length)
        start = self.position
        self.position += length
        return self._data[start : self.position]

    def text(self) -> str:
        return self.raw().decode("utf-8", "replace")

    def strings(self, count: int, keep: bool) -> list[bytes]:
        """`count` strings; with `keep` false they are only passed over."""
        found: list[bytes] = []
        data, position, size = self._data, self.position, self.size
        length_of = struct.Struct("<Q").unpack_from
        for _ in range(count):
            if position + 8 > size:
                raise _CutOff
            start = position + 8
            position = start + length_of(data, position)[0]
            if position > size:
                raise _CutOff
            if keep:
                found.append(data[start:position])
        self.position = position
        return found

    def value(self, kind: int, keep: bool) -> Any:
        """A value of this type; an array that is not wanted is passed over."""
        if kind == _STRING:
            return self.text()
        if kind != _ARRAY:
            return self.scalar(_code(kind))
        element, count = self.scalar("I"), self.scalar("Q")
        if count > MAX_ELEMENTS:
            raise _CutOff
        if element == _STRING:
            return self.strings(count, keep)
        code = f"{count}{_code(element)}"
        size = struct.calcsize("<" + code)
        self._need(size)
        start = self.position
        self.position += size
        return struct.unpack_from("<" + code, self._data, start) if keep else None

    def _need(self, size: int) -> None:
        if size > self.size - self.position:
            raise _CutOff


def _code(kind: int) -> str:
    code = _SCALARS.get(kind)
    if code is None:
        raise _CutOff
    return code


def _parse(reader: _Reader, path: Path) -> Gguf:
    if reader.scalar("4s") != b"GGUF":
        raise GgufError(f"{path} is not a GGUF file")
    version = reader.scalar("I")
    if version not in (2, 3):
        raise GgufError(f"{path} has GGUF version {version}; versions 2 and 3 are read")
    tensors, keys = reader.scalar("Q"), reader.scalar("Q")
    if keys > MAX_KEYS or tensors > MAX_TENSORS:
        raise _CutOff
    values: dict[str, Any] = {}
    for _ in range(keys):
        key, kind = reader.text(), reader.scalar("I")
        wanted = key in (_TOKENS, _TYPES) or kind != _ARRAY
        value = reader.value(kind, wanted)
        if wanted:
            values[key] = value
    _check_tensors(reader, tensors, values.get("general.alignment"))
    return _model(values)


def _check_tensors(reader: _Reader, count: int, alignment: Any) -> None:
    """The last tensor must begin inside the file: tells a download that was cut off."""
    last = 0
    for _ in range(count):
        reader.strings(1, False)
        for _ in range(min(reader.scalar("I"), 8)):
            reader.scalar("Q")
        reader.scalar("I")
        last = max(last, reader.scalar("Q"))
    aligned = alignment if isinstance(alignment, int) and alignment > 0 else 32
    start = -(-reader.position // aligned) * aligned
    if count and start + last >= reader.size:
        raise _CutOff


def _model(values: dict[str, Any]) -> Gguf:
    architecture = _str(values.get("general.architecture")) or ""
    tokens: Sequence[bytes] = values.get(_TOKENS) or ()
    types: Sequence[int] = values.get(_TYPES) or ()
    if not all(isinstance(token, bytes) for token in tokens[:1]):
        raise _CutOff
    bos, eos = (_token_id(values, name, len(tokens)) for name in ("bos", "eos"))
    add_bos = values.get("tokenizer.ggml.add_bos_token")
    context = values.get(f"{architecture}.context_length")
    return Gguf(
        architecture=architecture,
        name=_str(values.get("general.name")) or "",
        context_length=context if isinstance(context, int) else 0,
        chat_template=_str(values.get("tokenizer.chat_template")),
        bos_id=bos,
        eos_id=eos,
        bos_token="" if bos is None else tokens[bos].decode("utf-8", "replace"),
        eos_token="" if eos is None else tokens[eos].decode("utf-8", "replace"),
        add_bos=add_bos if isinstance(add_bos, bool) else None,
        control_tokens=_of_types(tokens, types, {_UNKNOWN, _CONTROL}),
        user_defined_tokens=_of_types(tokens, types, {_USER_DEFINED}),
    )


def _str(value: Any) -> str | None:
    return value if isinstance(value, str) else None


def _token_id(values: dict[str, Any], name: str, count: int) -> int | None:
    value = values.get(f"tokenizer.ggml.{name}_token_id")
    return value if isinstance(value, int) and 0 <= value < count else None


def _of_types(tokens: Sequence[bytes], types: Sequence[int], wanted: set[int]) -> tuple[str, ...]:
    found: list[str] = []
    for token, kind in zip(tokens, types, strict=False):
        if kind in wanted and token:
            try:
                found.append(token.decode("utf-8"))
            except UnicodeDecodeError:
                continue  # not text, so nobody can type it
    return tuple(found)
