"""Error responses that end a connection: invalid HTTP, or requests that cannot be served."""

from __future__ import annotations

import http
import re
from typing import NamedTuple

import httptools
import msgspec
from uvicorn.protocols.http.httptools_impl import STATUS_LINE


class Refusal(NamedTuple):
    """A status and the error text."""

    status: int
    text: str

    def wire(self) -> bytes:
        """Return the complete response."""
        body = msgspec.json.encode({"error": self.text})
        head = (
            b"content-type: application/json\r\ncontent-length: %d\r\nconnection: close\r\n\r\n"
            % len(body)
        )
        return b"".join((STATUS_LINE[self.status], head, body))


class Refused(Exception):
    """The request cannot be served on this connection."""

    def __init__(self, refusal: Refusal) -> None:
        super().__init__(refusal.text)
        self.refusal = refusal


NOT_HTTP = Refusal(400, "Invalid HTTP request received.")
NO_METHOD = Refusal(405, "Method Not Allowed")
HEAD_TOO_LARGE = Refusal(431, "The head of the request is too large")
TOO_MANY_HEADERS = Refusal(431, "The request has too many headers")
BODY_TOO_LONG = Refusal(413, "The body of the request continues after its response")
TOO_SLOW = Refusal(408, "The request took too long to arrive")
TOO_MANY_CONNECTIONS = Refusal(503, "The server has too many connections")
STOPPING = Refusal(503, "Server is stopping, it has stopped accepting new requests")


_REQUEST_LINE = re.compile(rb"([A-Z]+) \S+ HTTP/1\.[01]\r\n")
_KNOWN = {method.value.encode() for method in http.HTTPMethod}


def refusal_for(error: httptools.HttpParserError, data: bytes) -> Refusal:
    """Return the response after a failure to parse `data`.

    The cause is an exception of a parser callback, or of the parser itself.
    """
    reason = error.__context__
    if isinstance(reason, Refused):
        return reason.refusal
    line = (
        _REQUEST_LINE.match(data)
        if isinstance(error, httptools.HttpParserInvalidMethodError)
        else None
    )
    return NOT_HTTP if line is None or line[1] in _KNOWN else NO_METHOD
