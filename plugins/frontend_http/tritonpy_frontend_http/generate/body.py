"""The body of a request that is not one of inference."""

from __future__ import annotations

from typing import Any, NamedTuple

from tritonpy import Cancelled, RequestMemory, Reservation
from tritonpy_frontend_http.body_size import announced_size, check_body_size
from tritonpy_frontend_http.decode import check_json_size
from tritonpy_frontend_http.errors import BodyTooLarge

MANAGEMENT_BYTES = 1024 * 1024
"""Largest body of a management call but a load, whose body may hold the files of a model."""


class Body(NamedTuple):
    """What a client sent: all of its `size` bytes, or nothing of them where that is more than was to be kept."""

    data: bytes
    size: int


class BodyReader:
    """Reads bodies within limits in bytes: `limit` is Triton's limit of JSON, `max_body_bytes` that of all bodies, 0 for none."""

    def __init__(
        self, limit: int = 64 * 1024 * 1024, max_body_bytes: int = 0, memory: RequestMemory | None = None
    ) -> None:
        self.limit = limit
        self._max_body_bytes = max_body_bytes
        self._memory = memory or RequestMemory()

    def reservation(self) -> Reservation:
        """Return what takes the bytes of one body."""
        return self._memory.client().reservation()

    def check(self, size: int) -> None:
        """Raise TritonError for a body of `size` bytes that is too large; Triton's error comes first."""
        check_json_size(size, self.limit)
        check_body_size(size, self._max_body_bytes)

    async def read(self, receive: Any, memory: Reservation) -> Body | None:
        """Return the body, of which no more than `limit` bytes are kept; None where the client left in the middle of it.

        Raises TritonError where it has more than `max_body_bytes`, and where there is no memory for it.
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
        """Return the body of a management call, which is small unless it may hold `files`; its memory is reserved as long as its scope lives.

        Raises TritonError for one that is too large, as soon as that is known, and Cancelled if the client left in the middle of it.
        """
        memory = scope.setdefault("state", {})["body_memory"] = self.reservation()
        announced = announced_size(dict(scope["headers"]))
        self.check(announced)
        if not files:
            _check_management_size(announced)
            receive = _bounded(receive)
        body = await self.read(receive, memory)
        if body is None:
            raise Cancelled("the client left in the middle of its request")
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
        raise BodyTooLarge(size, MANAGEMENT_BYTES, "Among management calls, only the load of a model takes more.")
