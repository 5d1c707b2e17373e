"""The body of a request, read to its end."""

from __future__ import annotations

from typing import Any, NamedTuple


class Body(NamedTuple):
    """What a client sent: all of its `size` bytes, or nothing of them where that is more than was to be kept."""

    data: bytes
    size: int


async def read_body(receive: Any, limit: int) -> Body | None:
    """Return the body, of which no more than `limit` bytes are kept; None where the client left in the middle of it."""
    parts: list[bytes] = []
    size, more = 0, True
    while more:
        message = await receive()
        if message["type"] == "http.disconnect":
            return None
        part = message.get("body", b"")
        more = message.get("more_body", False)
        size += len(part)
        if size > limit:
            parts.clear()
        elif part:
            parts.append(part)
    return Body(b"".join(parts) if size <= limit else b"", size)
