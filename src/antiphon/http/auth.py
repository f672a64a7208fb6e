"""API keys: who a request comes from, decided before its body is read.

Decides contract G5. A key is compared by the digest of its bytes, in constant time, against
every key. Without keys everybody is the same anonymous principal.
"""

from __future__ import annotations

import hashlib
import hmac
import re
import time
from collections import OrderedDict
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from starlette.datastructures import Headers

from antiphon.errors import AuthenticationFailed, TooManyRequests

ANONYMOUS = "anonymous"
_NAME = re.compile(r"[A-Za-z0-9_.-]{1,64}")


@dataclass(frozen=True, slots=True)
class Key:
    """A key by its SHA-256, with the name of the principal who holds it."""

    name: str
    digest: bytes

    @classmethod
    def of(cls, secret: str, name: str | None = None) -> Key:
        """The key of a secret; without a name it is called by its fingerprint."""
        digest = hashlib.sha256(secret.encode()).digest()
        return cls(name or f"key-{digest.hex()[:12]}", digest)


def parse_keys(texts: Sequence[str]) -> list[Key]:
    """Keys from `KEY` or `NAME:KEY`.

    Raises:
        ValueError: a key that is empty or has blanks, which no header could carry.
    """
    keys: list[Key] = []
    for text in texts:
        name, colon, secret = text.strip().partition(":")
        if not colon or not _NAME.fullmatch(name):
            name, secret = "", text.strip()
        if not secret or any(c.isspace() or not c.isprintable() for c in secret):
            raise ValueError("an API key must not be empty and must not hold blanks")
        key = Key.of(secret, name or None)
        if any(key.digest == other.digest and key.name != other.name for other in keys):
            raise ValueError("one API key has two names")
        keys.append(key)
    return keys


class Failures:
    """Counts failed attempts per address and slows the address that makes too many."""

    LIMIT = 10
    WINDOW = 60.0
    ADDRESSES = 4096

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._counts: OrderedDict[str, tuple[float, int]] = OrderedDict()

    def check(self, address: str) -> None:
        """Raises TooManyRequests while the address has used up its attempts."""
        since, count = self._counts.get(address, (0.0, 0))
        rest = since + self.WINDOW - self._clock()
        if count >= self.LIMIT and rest > 0:
            raise TooManyRequests(
                "Too many failed attempts; wait before you try again.",
                headers={"Retry-After": str(int(rest) + 1)},
            )

    def add(self, address: str) -> None:
        """Count a failure."""
        now = self._clock()
        since, count = self._counts.pop(address, (now, 0))
        if now - since > self.WINDOW:
            since, count = now, 0
        self._counts[address] = since, count + 1
        while len(self._counts) > self.ADDRESSES:
            self._counts.popitem(last=False)


class Authenticator:
    """Names the principal of a request. With no keys there is only the anonymous one."""

    def __init__(self, keys: Sequence[Key], failures: Failures | None = None) -> None:
        self._keys = tuple(keys)
        self._failures = failures or Failures()

    def principal(self, headers: Headers, address: str) -> str:
        """The owner of whatever this request makes.

        Raises:
            AuthenticationFailed: no key, or an unknown one.
            TooManyRequests: the address failed too often lately.
        """
        if not self._keys:
            return ANONYMOUS
        secret = _secret(headers)
        name = self._name(secret) if secret else None
        if name is not None:
            return name
        self._failures.check(address)
        if secret:
            self._failures.add(address)
        raise AuthenticationFailed(
            "Missing API key: send it as 'Authorization: Bearer …'."
            if not secret
            else "Invalid API key.",
            headers={"WWW-Authenticate": "Bearer"},
        )

    def _name(self, secret: bytes) -> str | None:
        digest = hashlib.sha256(secret).digest()
        found = None
        for key in self._keys:
            if hmac.compare_digest(key.digest, digest):
                found = key.name
        return found


def _secret(headers: Headers) -> bytes:
    """Header values are latin-1 to ASGI; the bytes of the key are what was sent."""
    scheme, _, rest = headers.get("authorization", "").partition(" ")
    if scheme.lower() == "bearer":
        return rest.strip().encode("latin-1")
    return headers.get("x-api-key", "").strip().encode("latin-1")
