"""Sealed reasoning: `encrypted_content` that only this server can open, for its owner only.

Decides contract R5. AES-256-GCM under a server key that outlives restarts; the owner and the
key's id are authenticated with it, so that a blob of another owner, another key or with one
bit changed does not open. The key file is made at first use, readable by its owner only.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import os
import secrets
from pathlib import Path

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

_VERSION = b"\x01"
_NONCE = 12
_KEY = 32


class BrokenSeal(ValueError):
    """The blob was not made here, not for this owner, or was changed."""


class Seal:
    """Seals and opens texts. `key` has 32 bytes."""

    def __init__(self, key: bytes) -> None:
        self._cipher = AESGCM(key)
        self._id = hashlib.sha256(b"antiphon seal" + key).digest()[:8]

    @classmethod
    def load(cls, path: Path) -> Seal:
        """The seal of a key file, which is made if it is not there.

        Raises:
            OSError: it can be neither read nor made.
            ValueError: it is no key.
        """
        try:
            path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
            descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        except FileExistsError:
            pass
        else:
            with os.fdopen(descriptor, "w", encoding="ascii") as file:
                file.write(secrets.token_hex(_KEY) + "\n")
        text = path.read_text("ascii").strip()
        key = bytes.fromhex(text)
        if len(key) != _KEY:
            raise ValueError(f"{path} does not hold a key of {_KEY} bytes in hex")
        return cls(key)

    def close(self, text: str, owner: str) -> str:
        """The blob of a text."""
        nonce = secrets.token_bytes(_NONCE)
        sealed = self._cipher.encrypt(nonce, text.encode(), self._bound(owner))
        return base64.urlsafe_b64encode(_VERSION + self._id + nonce + sealed).decode()

    def open(self, blob: str, owner: str) -> str:
        """The text of a blob.

        Raises:
            BrokenSeal: it does not open for this owner.
        """
        try:
            data = base64.b64decode(blob, altchars=b"-_", validate=True)
            if base64.urlsafe_b64encode(data).decode() != blob:
                raise BrokenSeal("another spelling of the same bytes")
            head, nonce, sealed = data[:9], data[9 : 9 + _NONCE], data[9 + _NONCE :]
            if head != _VERSION + self._id:
                raise BrokenSeal("another key")
            return self._cipher.decrypt(nonce, sealed, self._bound(owner)).decode()
        except (binascii.Error, InvalidTag, ValueError) as error:
            raise BrokenSeal(str(error)) from None

    def _bound(self, owner: str) -> bytes:
        return b"reasoning\x00" + self._id + owner.encode()
