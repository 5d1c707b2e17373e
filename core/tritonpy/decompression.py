"""What clients compressed, with a bound on what it may become."""

from __future__ import annotations

import sys
import zlib

from tritonpy.errors import InvalidArgument

_READ_EITHER = 47  # zlib: 15 bits of window, + 32 reads gzip's frame and zlib's


def decompressed(packed: bytes, limit: int, *, what: str, remedy: str) -> bytes:
    """Return the data of a gzip or zlib stream, whichever it is; what follows the stream is ignored.

    `what` names it to the client, `remedy` says how its server takes more. Raises InvalidArgument where it is damaged, and where the data
    exceeds `limit` bytes.
    """
    stream = zlib.decompressobj(_READ_EITHER)
    try:
        data = stream.decompress(packed, min(limit, sys.maxsize - 1) + 1)
    except zlib.error as error:
        raise InvalidArgument(f"failed to decompress {what}: {error}") from None
    if len(data) > limit:
        raise InvalidArgument(f"Decompressed data size exceeds the maximum allowed value of {limit} bytes. {remedy}")
    if not stream.eof:
        raise InvalidArgument(f"failed to decompress {what}: the compressed data ends too early")
    return data
