"""Reading a model file's metadata: real values, and every way in which a file can be wrong."""

from __future__ import annotations

import contextlib
import struct
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from antiphon.engines import gguf, models


def string(text: str) -> bytes:
    raw = text.encode()
    return struct.pack("<Q", len(raw)) + raw


def pair(key: str, kind: int, value: bytes) -> bytes:
    return string(key) + struct.pack("<I", kind) + value


def strings(*texts: str) -> bytes:
    return struct.pack("<IQ", 8, len(texts)) + b"".join(map(string, texts))


def numbers(code: str, kind: int, *values: int) -> bytes:
    return struct.pack("<IQ", kind, len(values)) + struct.pack(f"<{len(values)}{code}", *values)


PAIRS = (
    pair("general.architecture", 8, string("tiny")),
    pair("general.name", 8, string("Tiny")),
    pair("tiny.context_length", 4, struct.pack("<I", 512)),
    pair("tokenizer.ggml.scores", 9, numbers("f", 6, 0, 0, 0, 0)),
    pair("tokenizer.ggml.tokens", 9, strings("<s>", "a", "<think>", "</s>")),
    pair("tokenizer.ggml.token_type", 9, numbers("i", 5, 3, 1, 4, 3)),
    pair("tokenizer.ggml.merges", 9, strings("a b", "b c")),
    pair("tokenizer.ggml.bos_token_id", 4, struct.pack("<I", 0)),
    pair("tokenizer.ggml.eos_token_id", 4, struct.pack("<I", 3)),
    pair("tokenizer.ggml.add_bos_token", 7, b"\x01"),
    pair("tokenizer.chat_template", 8, string("{{ messages }}")),
)
TENSOR = string("weight") + struct.pack("<IQIQ", 1, 8, 0, 0)


def file_bytes(version: int = 3, pairs: tuple[bytes, ...] = PAIRS, weights: int = 96) -> bytes:
    head = b"GGUF" + struct.pack("<IQQ", version, 1, len(pairs))
    return head + b"".join(pairs) + TENSOR + bytes(weights)


def written(folder: Path, data: bytes) -> Path:
    path = folder / "model.gguf"
    path.write_bytes(data)
    return path


def test_the_metadata_that_matters_is_read(tmp_path: Path) -> None:
    found = gguf.read(written(tmp_path, file_bytes()))
    assert found == gguf.Gguf(
        architecture="tiny",
        name="Tiny",
        context_length=512,
        chat_template="{{ messages }}",
        bos_id=0,
        eos_id=3,
        bos_token="<s>",
        eos_token="</s>",
        add_bos=True,
        control_tokens=("<s>", "</s>"),
        user_defined_tokens=("<think>",),
    )


def test_what_a_file_does_not_say_is_empty(tmp_path: Path) -> None:
    found = gguf.read(written(tmp_path, file_bytes(pairs=())))
    assert (found.context_length, found.chat_template, found.bos_id) == (0, None, None)
    assert (found.bos_token, found.control_tokens) == ("", ())


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"", "too short"),
        (b"PK\x03\x04" + bytes(100), "not a GGUF file"),
        (file_bytes(version=1), "version 1"),
        (file_bytes()[:200], "cut off"),
        (file_bytes(weights=0), "cut off"),
        (b"GGUF" + struct.pack("<IQQ", 3, 1, 1 << 60) + bytes(64), "cut off"),
        (file_bytes(pairs=(pair("x", 8, struct.pack("<Q", 1 << 62)),)), "cut off"),
        (file_bytes(pairs=(pair("x", 9, struct.pack("<IQ", 8, 1 << 62)),)), "cut off"),
        (file_bytes(pairs=(pair("x", 99, b""),)), "cut off"),
    ],
)
def test_a_file_that_is_no_model_is_refused_in_one_line(
    tmp_path: Path, data: bytes, message: str
) -> None:
    """N8: a model file that cannot be loaded gives one clear line."""
    with pytest.raises(gguf.GgufError, match=message) as caught:
        gguf.read(written(tmp_path, data))
    assert "\n" not in str(caught.value)


def test_a_missing_file_is_refused_in_one_line(tmp_path: Path) -> None:
    """N8: a model file that cannot be loaded gives one clear line."""
    with pytest.raises(gguf.GgufError, match=r"absent\.gguf cannot be read"):
        gguf.read(tmp_path / "absent.gguf")


@settings(max_examples=200)
@given(st.data())
def test_a_damaged_header_never_raises_anything_else(
    tmp_path_factory: pytest.TempPathFactory, data: st.DataObject
) -> None:
    raw = bytearray(file_bytes())
    for _ in range(data.draw(st.integers(1, 4))):
        raw[data.draw(st.integers(0, len(raw) - 1))] = data.draw(st.integers(0, 255))
    path = written(tmp_path_factory.mktemp("damaged"), bytes(raw[: data.draw(st.integers(0, 900))]))
    with contextlib.suppress(gguf.GgufError):
        assert isinstance(gguf.read(path), gguf.Gguf)


def test_the_default_model_says_what_it_is() -> None:
    """N1: the default model's own template, window and control tokens."""
    try:
        path = models.find_default()
    except models.ModelError as error:
        pytest.skip(str(error))
    found = gguf.read(path)
    assert (found.architecture, found.context_length) == ("llama", 8192)
    assert (found.bos_token, found.eos_token) == ("<|im_start|>", "<|im_end|>")
    assert {"<|im_start|>", "<|im_end|>"} <= set(found.control_tokens)
    assert "<|im_start|>" in (found.chat_template or "")
