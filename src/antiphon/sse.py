"""Server-sent events, at the level of bytes.

Decides framing (contract O6): `event:` and one `data:` line, `\\n` ends, one piece per event.
Knows no event type.
"""

from __future__ import annotations

import functools

DONE = b"data: [DONE]\n\n"
COMMENT = b": keep-alive\n\n"
KEEPALIVE = b'event: keepalive\ndata: {"type":"keepalive"}\n\n'

HEADERS = {
    "content-type": "text/event-stream; charset=utf-8",
    "cache-control": "no-cache",
    "x-accel-buffering": "no",
}


@functools.cache
def _head(event: str) -> bytes:
    return f"event: {event}\ndata: ".encode()


def frame(event: str, data: bytes) -> bytes:
    """One event; `data` is JSON without line breaks. There are few event types."""
    return _head(event) + data + b"\n\n"
