"""Compression of answers."""

from __future__ import annotations

import asyncio
import gzip
import zlib
from collections.abc import Callable
from typing import NamedTuple

from tritonpy_frontend_grpc.wire.frames import prefix

_INLINE_BELOW = 4 * 1024  # a thread would cost more than the work


class Compression(NamedTuple):
    """A way to compress messages, with its name on the wire."""

    name: str
    compress: Callable[[bytes], bytes]


# By the level of `infer_response_compression_level`, as grpc.aio's answers are: its library uses zlib's usual effort for both.
LEVELS = {
    "none": None,
    "low": Compression("gzip", lambda message: gzip.compress(message, 6, mtime=0)),
    "medium": Compression("deflate", zlib.compress),
    "high": Compression("deflate", zlib.compress),
}


def accepted(wanted: Compression | None, headers: dict[bytes, bytes]) -> Compression | None:
    """Return how the answers to a client are compressed: not at all where it does not take that."""
    if wanted is None:
        return None
    names = [name.strip() for name in headers.get(b"grpc-accept-encoding", b"").split(b",")]
    return wanted if wanted.name.encode() in names else None


async def framed(message: bytes, compression: Compression | None) -> bytes:
    """Return the frame of a message, compressed where that makes it smaller."""
    if compression is not None:
        small = len(message) < _INLINE_BELOW
        packed = compression.compress(message) if small else await asyncio.to_thread(compression.compress, message)
        if len(packed) < len(message):
            return prefix(packed, 1) + packed
    return prefix(message) + message
