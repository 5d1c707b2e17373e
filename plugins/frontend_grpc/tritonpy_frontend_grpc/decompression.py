"""Decompression of messages with a size limit. Independent of the transport."""

from __future__ import annotations

import asyncio

from tritonpy.frontend import Reservation, decompressed

COMPRESSED_PREFIXES = frozenset({b"\x1f", b"x"})
"""First byte of compressed messages (gzip magic number, zlib default window).

No plain message has it.
"""
_GZIP = b"\x1f\x8b"
LIMIT = 64 * 2**20
"""Default limit of a decompressed message in bytes."""
SMALL_LIMIT = 64 * 1024
"""Limit of decompressed health and reflection requests in bytes."""
_REMEDY = "Use max_decompressed_size under 'frontends: grpc:' to increase the limit."
INLINE_BELOW = 4 * 1024  # smaller messages: a thread would cost more


def compression_name(raw: bytes) -> bytes:
    """Return the compression that the start of a message indicates, b"" for none."""
    if raw[:1] not in COMPRESSED_PREFIXES:
        return b""
    if raw[:2] == _GZIP:
        return b"gzip"
    return b"deflate" if raw[:1] == b"x" and int.from_bytes(raw[:2], "big") % 31 == 0 else b""


async def decompress_async(raw: bytes, limit: int, memory: Reservation | None = None) -> bytes:
    """Return the decompressed message; an uncompressed one is returned unchanged.

    Raises InvalidArgument if it is damaged or exceeds `limit` bytes, and RequestMemoryFull if
    `memory` cannot grow by its size.
    """
    if len(raw) < INLINE_BELOW:
        return decompress(raw, limit, memory)
    return await asyncio.to_thread(decompress, raw, limit, memory)


def decompress(raw: bytes, limit: int, memory: Reservation | None = None) -> bytes:
    """Return the decompressed message, like `decompress_async`, in this thread."""
    if not compression_name(raw):
        return raw
    return decompressed(raw, limit, name="the request", remedy=_REMEDY, memory=memory)
