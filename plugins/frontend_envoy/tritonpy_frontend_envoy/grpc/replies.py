"""What a call sends back, as events of ASGI: head, messages, and the status in trailers or, where there is no message, in the head."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any
from urllib.parse import quote

from tritonpy import TritonError
from tritonpy_frontend_envoy.grpc.head import UnknownEncoding
from tritonpy_frontend_grpc.status import outcome

Event = Mapping[str, Any]
Receive = Callable[[], Awaitable[Event]]
Send = Callable[[Event], Awaitable[None]]

_TYPE = (b"content-type", b"application/grpc")
_PRINTABLE = "".join(map(chr, range(0x20, 0x7F))).replace("%", "")

# Nobody changes an event, so those that are always the same are made once.
START: Event = {"type": "http.response.start", "status": 200, "headers": [_TYPE], "trailers": True}
END: Event = {"type": "http.response.body", "body": b"", "more_body": False}
OK: Event = {"type": "http.response.trailers", "headers": [(b"grpc-status", b"0")]}
NOT_GRPC: Event = {"type": "http.response.start", "status": 415, "headers": [(b"accept", b"application/grpc")]}


def start(encoding: str) -> Event:
    """Return the head of an answer whose messages may be compressed in that way."""
    return {**START, "headers": [_TYPE, (b"grpc-encoding", encoding.encode())]}


def chunk(body: bytes, *, last: bool) -> Event:
    """Return a piece of the body; what follows the last one are the trailers."""
    return {"type": "http.response.body", "body": body, "more_body": not last}


def failed(error: TritonError) -> tuple[int, Sequence[tuple[bytes, bytes]]]:
    """Return the status of a call that `error` ended, and the headers that say so; `error` loses its traceback."""
    status, text, more = outcome(error)
    headers = [(b"grpc-status", b"%d" % status), (b"grpc-message", percent_encoded(text))]
    if isinstance(error, UnknownEncoding):
        headers.append((b"grpc-accept-encoding", b"identity,deflate,gzip"))
    return status, [*headers, *[(name.encode(), value.encode()) for name, value in more]]


def only_trailers(headers: Sequence[tuple[bytes, bytes]]) -> Event:
    """Return the head of an answer that ends with it."""
    return {**START, "headers": [_TYPE, *headers], "trailers": False}


def trailers(headers: Sequence[tuple[bytes, bytes]]) -> Event:
    """Return what ends an answer."""
    return {"type": "http.response.trailers", "headers": headers}


def percent_encoded(text: str) -> bytes:
    """Return `text` as `grpc-message` carries it: what is not printable ASCII, and the percent sign, as `%XX` of its UTF-8 bytes."""
    return quote(text, safe=_PRINTABLE, errors="replace").encode()
