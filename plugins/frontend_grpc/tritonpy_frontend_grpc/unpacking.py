"""Compressed messages: unpacked here, where their size is bounded, whatever transport brings them. Knows no transport."""

from __future__ import annotations

import asyncio

from tritonpy import Reservation, decompressed

PACKED = frozenset({b"\x1f", b"x"})
"""How compressed messages begin: gzip's magic number, and zlib's usual window. No message of the service begins so."""
_GZIP = b"\x1f\x8b"
LIMIT = 64 * 2**20
"""How large a message may become by unpacking, in bytes, where nobody says."""
SMALL = 64 * 1024
"""How large requests of health and reflection may become, in bytes: they are a few."""
_REMEDY = "Use max_decompressed_size under 'frontends: grpc:' to increase the limit."
INLINE_BELOW = 4 * 1024  # a thread would cost more than the work


def packed_as(raw: bytes) -> bytes:
    """Return the name of the compression that a message begins like, b"" for none."""
    if raw[:1] not in PACKED:
        return b""
    if raw[:2] == _GZIP:
        return b"gzip"
    return b"deflate" if raw[:1] == b"x" and int.from_bytes(raw[:2], "big") % 31 == 0 else b""


async def unpacked(raw: bytes, limit: int, memory: Reservation | None = None) -> bytes:
    """Return a message without its compression; one that is not compressed after all comes back as it is.

    Raises InvalidArgument where it is damaged or holds more than `limit` bytes, RequestMemoryFull where it has no room in `memory`.
    """
    if len(raw) < INLINE_BELOW:
        return unpack(raw, limit, memory)
    return await asyncio.to_thread(unpack, raw, limit, memory)


def unpack(raw: bytes, limit: int, memory: Reservation | None = None) -> bytes:
    """Do what `unpacked` does, in this thread."""
    if not packed_as(raw):
        return raw
    return decompressed(raw, limit, what="the request", remedy=_REMEDY, memory=memory)
