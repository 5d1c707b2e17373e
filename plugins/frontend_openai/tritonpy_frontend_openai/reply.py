"""The HTTP response of one call: a document, an error, or a stream of events."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import Any

from tritonpy_frontend_openai.errors import ApiError, ErrorStyle, encode, error_body

_JSON = (b"content-type", b"application/json")
_EVENTS = (
    (b"content-type", b"text/event-stream; charset=utf-8"),
    (b"cache-control", b"no-cache"),
)

Send = Callable[[Any], Awaitable[None]]


class Reply:
    """Sends one response. `style` is the form of its errors, `headers` are further headers."""

    def __init__(self, send: Send, request_id: str, style: ErrorStyle) -> None:
        self._send = send
        self._style = style
        self.request_id = request_id
        self.headers: list[tuple[bytes, bytes]] = []
        self.started = False

    async def document(self, value: Any) -> None:
        """Send `value` as JSON."""
        await self._whole(200, encode(value))

    async def empty(self) -> None:
        """Send an empty body."""
        await self._whole(200, b"")

    async def error(self, error: ApiError) -> None:
        """Send an error."""
        status, body = error_body(error, self._style)
        extra = [(b"retry-after", error.retry_after.encode())] if error.retry_after else []
        if status == 401:
            extra.append((b"www-authenticate", b'Bearer realm="tritonpy"'))
        if status == 405:
            extra.append((b"allow", (error.param or "").encode()))
        await self._whole(status, body, extra)

    async def begin_stream(self) -> None:
        """Send the head of a stream."""
        self.started = True
        await self._start(200, list(_EVENTS))

    async def part(self, data: bytes) -> None:
        """Send a part of a stream. It waits for a slow client."""
        await self._send({"type": "http.response.body", "body": data, "more_body": True})

    async def end(self) -> None:
        """End the stream."""
        await self._send({"type": "http.response.body", "body": b""})

    async def _whole(
        self, status: int, body: bytes, extra: Sequence[tuple[bytes, bytes]] = ()
    ) -> None:
        self.started = True
        await self._start(status, [_JSON, (b"content-length", b"%d" % len(body)), *extra])
        await self._send({"type": "http.response.body", "body": body})

    async def _start(self, status: int, headers: list[tuple[bytes, bytes]]) -> None:
        headers += self.headers
        headers.append((b"x-request-id", self.request_id.encode("latin-1", "replace")))
        await self._send({"type": "http.response.start", "status": status, "headers": headers})
