"""Compression of responses."""

from __future__ import annotations

import asyncio
import gzip
import zlib
from collections.abc import Callable
from typing import NamedTuple

from tritonpy_frontend_grpc.h2.message_frames import prefix

_INLINE_BELOW = 4 * 1024  # smaller messages: a thread would cost more


class Compression(NamedTuple):
    """A compression algorithm and its name in gRPC headers."""

    name: str
    compress: Callable[[bytes], bytes]


# Algorithms by `infer_response_compression_level`. Like grpc.aio, all use zlib's default effort.
LEVELS = {
    "none": None,
    "low": Compression("gzip", lambda message: gzip.compress(message, 6, mtime=0)),
    "medium": Compression("deflate", zlib.compress),
    "high": Compression("deflate", zlib.compress),
}


def choose_compression(
    configured: Compression | None, headers: dict[bytes, bytes]
) -> Compression | None:
    """Return the compression of responses, or None if the client does not accept it."""
    if configured is None:
        return None
    names = [name.strip() for name in headers.get(b"grpc-accept-encoding", b"").split(b",")]
    return configured if configured.name.encode() in names else None


async def frame_message(message: bytes, compression: Compression | None) -> bytes:
    """Return the frame of a message, compressed if that makes it smaller."""
    if compression is not None:
        is_small = len(message) < _INLINE_BELOW
        compressed = (
            compression.compress(message)
            if is_small
            else await asyncio.to_thread(compression.compress, message)
        )
        if len(compressed) < len(message):
            return prefix(compressed, 1) + compressed
    return prefix(message) + message
