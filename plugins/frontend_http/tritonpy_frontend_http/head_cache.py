"""Cache of parsed request heads: persistent clients send identical heads with every request."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from tritonpy_frontend_http.infer_calls import Target

MAX_HEAD_BYTES = 2048  # bytes of a cached head
MAX_HEADS = 512  # heads; bounds the memory if heads never repeat
END = b"\r\n\r\n"
_END_SIZE = len(END)


class RequestHead(NamedTuple):
    """A parsed head: target, headers with names in lower case, and body size in bytes."""

    target: Target
    headers: Mapping[bytes, bytes]
    body_size: int


class HeadCache:
    """Maps the bytes of a head to the parsed head. Used by all connections on the event loop."""

    def __init__(self) -> None:
        self._heads: dict[bytes, RequestHead] = {}

    def find(self, data: bytes) -> tuple[RequestHead, int] | None:
        """Return the cached head and the start of the body if `data` is exactly one request."""
        end = data.find(END, 0, MAX_HEAD_BYTES)
        if end < 0:
            return None
        start = end + _END_SIZE
        head = self._heads.get(data[:start])
        if head is None or len(data) - start != head.body_size:
            return None
        return head, start

    def learn(self, data: bytes, target: Target, headers: list[tuple[bytes, bytes]]) -> None:
        """Cache the head of request `data`.

        Does nothing without a Content-Length, or with a header that affects the connection.
        """
        start = data.find(END, 0, MAX_HEAD_BYTES) + len(END)
        names = [name for name, _ in headers]
        values = dict(headers)
        size = values.get(b"content-length", b"")
        if (
            start < len(END)
            or not size.isdigit()
            or len(data) - start != int(size)
            or len(names) != len(values)
        ):
            return
        if values.keys() & {b"transfer-encoding", b"expect", b"connection", b"upgrade"}:
            return
        if len(self._heads) >= MAX_HEADS:
            self._heads.clear()
        self._heads[data[:start]] = RequestHead(target, values, int(size))
