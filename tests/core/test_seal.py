"""Sealed reasoning: what opens, for whom, and the file of the key."""

from __future__ import annotations

import base64
import os
import stat
import string
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from antiphon.app import seal_of
from antiphon.config import ConfigError, Settings
from antiphon.core.seal import BrokenSeal, Seal

KEY = bytes(range(32))
TRACE = "I think 4 东😀."


@given(st.text(st.characters(exclude_categories=["Cs"])), st.text(max_size=20))
def test_any_text_comes_back(text: str, owner: str) -> None:
    """R5."""
    seal = Seal(KEY)
    blob = seal.close(text, owner)
    assert blob.isascii()
    assert seal.open(blob, owner) == text


def test_a_blob_opens_after_a_restart(tmp_path: Path) -> None:
    """R5: the key outlives the process."""
    path = tmp_path / "made" / "seal.key"
    blob = Seal.load(path).close(TRACE, "ann")
    assert Seal.load(path).open(blob, "ann") == TRACE


def test_the_key_file_is_for_its_owner_only(tmp_path: Path) -> None:
    """R5: file and folder."""
    path = tmp_path / "made" / "seal.key"
    previous = os.umask(0)
    try:
        Seal.load(path)
    finally:
        os.umask(previous)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700


def test_a_blob_tells_nothing_and_is_never_the_same() -> None:
    """R5: encryption with a fresh nonce."""
    seal = Seal(KEY)
    first, second = (seal.close(TRACE, "ann") for _ in range(2))
    assert first != second
    assert b"think" not in base64.urlsafe_b64decode(first)


def test_another_owner_cannot_open_it() -> None:
    """R5: bound to the principal."""
    blob = Seal(KEY).close(TRACE, "ann")
    with pytest.raises(BrokenSeal):
        Seal(KEY).open(blob, "bob")


def test_another_key_cannot_open_it() -> None:
    """R5: bound to the server's key."""
    blob = Seal(KEY).close(TRACE, "ann")
    with pytest.raises(BrokenSeal):
        Seal(bytes(32)).open(blob, "ann")


def test_no_bit_can_be_changed() -> None:
    """R5: authenticated, all of it."""
    seal = Seal(KEY)
    data = base64.urlsafe_b64decode(seal.close(TRACE, "ann"))
    for index in range(len(data)):
        for bit in range(8):
            changed = bytearray(data)
            changed[index] ^= 1 << bit
            with pytest.raises(BrokenSeal):
                seal.open(base64.urlsafe_b64encode(changed).decode(), "ann")


def test_no_character_can_be_changed() -> None:
    """R5: not even one whose bits mean nothing, as the last one of base64."""
    seal = Seal(KEY)
    for text in ("", "a", "ab"):
        blob = seal.close(text, "ann")
        for index, character in enumerate(blob):
            for other in set(f"{string.ascii_letters}{string.digits}-_+/=\né") - {character}:
                with pytest.raises(BrokenSeal):
                    seal.open(blob[:index] + other + blob[index + 1 :], "ann")


@pytest.mark.parametrize("blob", ["", "=", "A", "gAAAAopaque", "AAAA" * 20, "é", " ", "\ud800"])
def test_what_is_no_blob_does_not_open(blob: str) -> None:
    """R5: nothing else is raised."""
    with pytest.raises(BrokenSeal):
        Seal(KEY).open(blob, "ann")


@pytest.mark.parametrize(
    "content", [b"", b"zz", b"00" * 31, b"00" * 33, b"\xff\x00"], ids=lambda each: str(len(each))
)
def test_a_broken_key_file_ends_the_start_in_one_line(tmp_path: Path, content: bytes) -> None:
    """R5: and the file stays as it is."""
    path = tmp_path / "seal.key"
    path.write_bytes(content)
    with pytest.raises(ConfigError) as caught:
        seal_of(Settings(seal_key_file=path))
    message = str(caught.value)
    assert str(path) in message
    assert "--seal-key-file" in message
    assert "\n" not in message
    assert path.read_bytes() == content


def test_a_key_file_that_cannot_be_made_ends_the_start_in_one_line(tmp_path: Path) -> None:
    """R5."""
    (tmp_path / "file").touch()
    with pytest.raises(ConfigError, match="--seal-key-file"):
        seal_of(Settings(seal_key_file=tmp_path / "file" / "seal.key"))
