"""Decompression of request data, with a limit on its size."""

from __future__ import annotations

import zlib
from io import BytesIO

from tritonpy_network.request_memory import Reservation
from tritonpy_types.errors import InvalidArgument

_STEP = 1024 * 1024
_READ_EITHER = 47  # zlib: 15 bits of window, + 32 accepts gzip and zlib headers


def decompressed(
    packed: bytes, limit: int, *, name: str, remedy: str, memory: Reservation | None = None
) -> bytes:
    """Return the data of a gzip or zlib stream; data after the stream is ignored.

    `name` names the data in error texts; `remedy` describes how to raise the server's limit. Raises
    InvalidArgument if the stream is damaged or the data exceeds `limit` bytes. With `memory` the
    decompressed size is reserved in addition to its current bytes; raises RequestMemoryFull.
    """
    stream = zlib.decompressobj(_READ_EITHER)
    step = max(_STEP, len(packed))  # each step copies the rest of `packed`
    held = 0 if memory is None else memory.nbytes
    data, size = BytesIO(), 0
    while True:
        try:
            part = stream.decompress(
                stream.unconsumed_tail if size else packed, min(step, limit + 1 - size)
            )
        except zlib.error as error:
            raise InvalidArgument(f"failed to decompress {name}: {error}") from None
        ended = stream.eof
        if not part and not ended:
            raise InvalidArgument(
                f"failed to decompress {name}: the compressed data ends too early"
            )
        size += len(part)
        if size > limit:
            raise InvalidArgument(
                f"Decompressed data size exceeds the maximum allowed value of {limit} bytes. "
                f"{remedy}"
            )
        if memory is not None:
            memory.require(held + size)
        if ended and size == len(part):
            return part
        data.write(part)
        if ended:
            return data.getvalue()
