"""HTTP/1.0 beside HTTP/1.1, on one port.

Decides which parser a connection gets, by its first line. The fast one sends chunks whatever
the client's version; a client of HTTP/1.0 knows no chunks and needs a body that ends with the
connection.
"""

from __future__ import annotations

from uvicorn.protocols.http.h11_impl import H11Protocol
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from antiphon.errors import InvalidRequest
from antiphon.ids import Ids
from antiphon.schema.error import ErrorBody, ErrorEnvelope

_LONGEST_LINE = 65_536


class HttpProtocol(HttpToolsProtocol):
    """The fast parser, which hands connections of old clients over to the careful one."""

    _head: bytes | None = b""

    def send_400_response(self, msg: str) -> None:
        """What is no HTTP is answered in the envelope as well."""
        body = ErrorBody(message=msg, type=InvalidRequest.type)
        answer = ErrorEnvelope(error=body).encode()
        head = (
            "HTTP/1.1 400 Bad Request\r\nContent-Type: application/json\r\n"
            f"X-Request-Id: {Ids().new('req')}\r\nContent-Length: {len(answer)}\r\n"
            "Connection: close\r\n\r\n"
        )
        self.transport.write(head.encode() + answer)
        self.transport.close()

    def data_received(self, data: bytes) -> None:
        """Look at the first line, then get out of the way."""
        if self._head is None:
            super().data_received(data)
            return
        self._head += data
        line, end, _ = self._head.partition(b"\n")
        if not end and len(line) < _LONGEST_LINE:
            return
        head, self._head = self._head, None
        if not line.rstrip().endswith(b"HTTP/1.0"):
            super().data_received(head)
            return
        self.connections.discard(self)
        careful = H11Protocol(self.config, self.server_state, self.app_state, self.loop)
        self.transport.set_protocol(careful)
        careful.connection_made(self.transport)
        careful.data_received(head)
