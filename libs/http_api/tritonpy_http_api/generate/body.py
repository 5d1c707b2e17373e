"""Bodies of generate and management calls."""

from __future__ import annotations

from typing import Any, NamedTuple

from tritonpy import Cancelled, InvalidArgument
from tritonpy.frontend import RequestMemory, Reservation
from tritonpy_http_api.body_size import (
    MAX_CHUNKS,
    TOO_MANY_CHUNKS,
    check_body_size,
    declared_size,
)
from tritonpy_http_api.decode import check_json_size
from tritonpy_http_api.errors import BodyTooLarge

MANAGEMENT_BYTES = 1024 * 1024
"""Largest body of a management call. A load, whose body may contain files, is exempt."""


class Body(NamedTuple):
    """The body of a request and its size. `data` is empty if the body exceeds the limit."""

    data: bytes
    size: int


class BodyReader:
    """Reads bodies up to a size in bytes.

    `limit` applies to JSON, `max_body_bytes` to any body (0: no limit).
    """

    def __init__(
        self,
        limit: int = 64 * 1024 * 1024,
        max_body_bytes: int = 0,
        memory: RequestMemory | None = None,
    ) -> None:
        self.limit = limit
        self._max_body_bytes = max_body_bytes
        self._memory = memory or RequestMemory()

    def reservation(self) -> Reservation:
        """Return a new reservation for the bytes of one body."""
        return self._memory.client().reservation()

    def check(self, size: int) -> None:
        """Raise TritonError if a body of `size` bytes is too large.

        Triton's own limit is checked first.
        """
        check_json_size(size, self.limit)
        check_body_size(size, self._max_body_bytes)

    async def read(self, receive: Any, memory: Reservation) -> Body | None:
        """Return the body, without its data if it exceeds `limit`; None if the client disconnected.

        Raises TritonError if it exceeds `max_body_bytes` or the request memory is full.
        """
        parts: list[bytes] = []
        size, more = 0, True
        while more:
            message = await receive()
            if message["type"] == "http.disconnect":
                return None
            part = message.get("body", b"")
            more = message.get("more_body", False)
            size += len(part)
            check_body_size(size, self._max_body_bytes)
            if size > self.limit:
                parts.clear()
                memory.shrink()
            elif part:
                memory.require(size)
                parts.append(part)
        return Body(b"".join(parts) if size <= self.limit else b"", size)

    async def management_body(self, scope: Any, receive: Any, *, files: bool = False) -> bytes:
        """Return the body of a management call. Only a call with `files` may have a large body.

        The memory stays reserved as long as the scope exists. Raises TritonError as soon as the
        body is known to be too large, and Cancelled if the client disconnected.
        """
        memory = scope.setdefault("state", {})["body_memory"] = self.reservation()
        headers = dict(scope["headers"])
        declared = declared_size(headers)
        self.check(declared)
        if not files:
            _check_management_size(declared)
            receive = _bounded(receive)
        body = await self.read(receive, memory)
        if body is None:
            raise Cancelled("the client disconnected before its request was complete")
        if (
            headers.get(b"transfer-encoding") == b"chunked"
            and scope["state"].get("chunks", 0) > MAX_CHUNKS
        ):
            raise InvalidArgument(TOO_MANY_CHUNKS)
        self.check(body.size)
        return body.data


def _bounded(receive: Any) -> Any:
    size = 0

    async def receive_bounded() -> Any:
        nonlocal size
        message = await receive()
        size += len(message.get("body", b""))
        _check_management_size(size)
        return message

    return receive_bounded


def _check_management_size(size: int) -> None:
    if size > MANAGEMENT_BYTES:
        raise BodyTooLarge(
            size,
            MANAGEMENT_BYTES,
            "Among management calls, only the load of a model may have a larger body.",
        )
