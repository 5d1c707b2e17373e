"""What a call sends back, as events of ASGI: head, messages, and the status in trailers or, where there is no message, in the head."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import TYPE_CHECKING, Any

from tritonpy_frontend_grpc.wire import replies
from tritonpy_frontend_grpc.wire.frames import PREFIX

if TYPE_CHECKING:
    from tritonpy_frontend_grpc.wire.head import Headers

Event = Mapping[str, Any]
Receive = Callable[[], Awaitable[Event]]
Send = Callable[[Event], Awaitable[None]]


def start(headers: Headers) -> Event:
    """Return the head of an answer."""
    return {"type": "http.response.start", "status": 200, "headers": list(headers), "trailers": True}


def chunk(body: bytes, *, last: bool) -> Event:
    """Return a piece of the body; what follows the last one are the trailers."""
    return {"type": "http.response.body", "body": body, "more_body": not last}


def whole(message: bytes) -> Event:
    """Return the body of an answer that is one message, not compressed: prefix and message in one piece."""
    return {"type": "http.response.body", "body": PREFIX.pack(0, len(message)) + message, "more_body": False}


def only_trailers(headers: Headers) -> Event:
    """Return the head of an answer that ends with it."""
    return {**START, "headers": [*replies.PLAIN, *headers], "trailers": False}


def trailers(headers: Headers) -> Event:
    """Return what ends an answer."""
    return {"type": "http.response.trailers", "headers": list(headers)}


# Nobody changes an event, so those that are always the same are made once.
START = start(replies.PLAIN)
END = chunk(b"", last=True)
OK = trailers(replies.OK)
NOT_GRPC: Event = {
    "type": "http.response.start",
    "status": replies.NOT_GRPC,
    "headers": list(replies.ACCEPTED),
}
