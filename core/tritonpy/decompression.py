"""What clients compressed, with a bound on what it may become."""

from __future__ import annotations

import zlib
from io import BytesIO

from tritonpy.errors import InvalidArgument
from tritonpy.request_memory import Reservation

_STEP = 1024 * 1024
_READ_EITHER = 47  # zlib: 15 bits of window, + 32 reads gzip's frame and zlib's


def decompressed(packed: bytes, limit: int, *, what: str, remedy: str, memory: Reservation | None = None) -> bytes:
    """Return the data of a gzip or zlib stream, whichever it is; what follows the stream is ignored.

    `what` names it to the client, `remedy` says how its server takes more. Raises InvalidArgument where it is damaged, and where the data
    exceeds `limit` bytes. With `memory` what it becomes is reserved beside what that holds; raises RequestMemoryFull.
    """
    stream = zlib.decompressobj(_READ_EITHER)
    step = max(_STEP, len(packed))  # each copies what is left of `packed`
    held = 0 if memory is None else memory.nbytes
    data, size = BytesIO(), 0
    while True:
        try:
            part = stream.decompress(stream.unconsumed_tail if size else packed, min(step, limit + 1 - size))
        except zlib.error as error:
            raise InvalidArgument(f"failed to decompress {what}: {error}") from None
        ended = stream.eof
        if not part and not ended:
            raise InvalidArgument(f"failed to decompress {what}: the compressed data ends too early")
        size += len(part)
        if size > limit:
            raise InvalidArgument(
                f"Decompressed data size exceeds the maximum allowed value of {limit} bytes. {remedy}"
            )
        if memory is not None:
            memory.require(held + size)
        if ended and size == len(part):
            return part
        data.write(part)
        if ended:
            return data.getvalue()
