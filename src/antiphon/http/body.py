"""Request bodies: media type, size, content encoding.

Decides contract C24: what is not JSON is 415, what is too large is 413 while it is read, and
a compressed body is decoded under the same limit.
"""

from __future__ import annotations

import zlib
from typing import Protocol

import zstandard
from starlette.requests import Request

from antiphon.errors import BodyTooLarge, InvalidRequest, UnsupportedMedia

ENCODINGS = "gzip, deflate, zstd"


class _Decoder(Protocol):
    def feed(self, data: bytes, room: int) -> bytes:
        """Decode at most `room` + 1 bytes."""
        ...

    def finished(self) -> bool:
        """Whether the compressed data was complete."""
        ...


async def read_json(request: Request, limit: int) -> bytes:
    """The decoded body of a JSON request.

    Raises:
        UnsupportedMedia: other content type, charset or content encoding.
        BodyTooLarge: more than `limit` bytes, as sent or as decoded.
        InvalidRequest: the compressed data is broken.
    """
    _check_type(request.headers.get("content-type", ""))
    decoder = _decoder(request.headers.get("content-encoding", ""))
    length = request.headers.get("content-length", "")
    if length.isdigit() and int(length) > limit:
        raise _too_large(limit)
    parts: list[bytes] = []
    size = 0
    async for chunk in request.stream():
        if decoder is not None:
            try:
                chunk = decoder.feed(chunk, limit - size)
            except (zlib.error, zstandard.ZstdError):
                raise _broken() from None
        size += len(chunk)
        if size > limit:
            raise _too_large(limit)
        parts.append(chunk)
    if decoder is not None and not decoder.finished():
        raise _broken()
    return b"".join(parts)


def _check_type(header: str) -> None:
    media, _, parameters = header.partition(";")
    if media.strip().lower() != "application/json":
        raise UnsupportedMedia(
            f"The Content-Type must be application/json, not '{media.strip()[:80]}'."
        )
    for parameter in parameters.split(";"):
        name, _, value = parameter.partition("=")
        charset = value.strip().strip('"').lower()
        if name.strip().lower() == "charset" and charset not in ("utf-8", "utf8", "us-ascii"):
            raise UnsupportedMedia("The charset of a JSON body must be utf-8.")


def _decoder(header: str) -> _Decoder | None:
    codings = [c for c in (c.strip().lower() for c in header.split(",")) if c]
    codings = [c for c in codings if c != "identity"]
    match codings:
        case []:
            return None
        case ["gzip" | "x-gzip"]:
            return _Zlib(zlib.MAX_WBITS | 16)
        case ["deflate"]:
            return _Deflate()
        case ["zstd"]:
            return _Zstd()
    raise UnsupportedMedia(
        f"The Content-Encoding '{header[:80]}' is not supported; use one of {ENCODINGS}.",
        headers={"Accept-Encoding": ENCODINGS},
    )


class _Zlib:
    def __init__(self, wbits: int) -> None:
        self._inner = zlib.decompressobj(wbits)

    def feed(self, data: bytes, room: int) -> bytes:
        return self._inner.decompress(data, room + 1)

    def finished(self) -> bool:
        return self._inner.eof


class _Deflate:
    """Senders disagree on whether deflate has a zlib header, so the first byte decides."""

    def __init__(self) -> None:
        self._inner: _Zlib | None = None

    def feed(self, data: bytes, room: int) -> bytes:
        if self._inner is None:
            if not data:
                return b""
            zlib_header = data[0] & 0x0F == 8 and data[0] >> 4 <= 7
            self._inner = _Zlib(zlib.MAX_WBITS if zlib_header else -zlib.MAX_WBITS)
        return self._inner.feed(data, room)

    def finished(self) -> bool:
        return self._inner is not None and self._inner.finished()


class _Zstd:
    """Decodes in small steps of input, so that a bomb is noticed before it has unfolded."""

    STEP = 256

    def __init__(self) -> None:
        self._inner = zstandard.ZstdDecompressor(max_window_size=1 << 23).decompressobj()

    def feed(self, data: bytes, room: int) -> bytes:
        parts: list[bytes] = []
        for start in range(0, len(data), self.STEP):
            parts.append(self._inner.decompress(data[start : start + self.STEP]))
            room -= len(parts[-1])
            if room < 0:
                break
        return b"".join(parts)

    def finished(self) -> bool:
        return bool(self._inner.eof)


def _too_large(limit: int) -> BodyTooLarge:
    return BodyTooLarge(f"The body is larger than {limit} bytes.", headers={"Connection": "close"})


def _broken() -> InvalidRequest:
    return InvalidRequest("The compressed body is broken or cut off.")
