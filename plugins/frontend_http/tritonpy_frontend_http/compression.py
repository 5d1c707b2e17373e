"""Compressed bodies: `Content-Encoding` of requests, `Accept-Encoding` for responses; gzip and deflate."""

from __future__ import annotations

import zlib
from collections.abc import Iterable

from tritonpy import InvalidArgument, Reservation, Unsupported, decompressed

_WINDOW_BITS = {"gzip": 31, "deflate": 15}  # zlib: 15 bits of window; + 16 writes gzip's frame
SUPPORTED = b"gzip, deflate"


class UnsupportedEncoding(Unsupported):
    """The request is compressed in a way that is not known; the answer names those that are."""


def request_encoding(header: bytes | None) -> str:
    """Return how a request's body is compressed, "" for not at all; raises UnsupportedEncoding."""
    if not header or header == b"identity":
        return ""
    encoding = header.decode("latin-1")
    if encoding not in _WINDOW_BITS:
        raise UnsupportedEncoding("Unsupported compression type")
    return encoding


def response_encoding(header: bytes | None) -> str:
    """Choose from an `Accept-Encoding` header the first of the greatest weights; "" for not compressed.

    As in Triton, `*` is not understood and an entry whose weight is no number is passed over.
    """
    if not header:
        return ""
    chosen, best = "", 0.0
    for entry in header.decode("latin-1").split(","):
        name, _, text = entry.lstrip(" ").partition(";q=")
        try:
            weight = float(text) if text else 1.0
        except ValueError:
            continue
        if weight > best and (name in _WINDOW_BITS or name == "identity"):
            chosen, best = name, weight
    return chosen if chosen in _WINDOW_BITS else ""


def decompress(body: bytes, limit: int, memory: Reservation | None = None) -> bytes:
    """Return the data of a gzip or zlib stream, whichever it is; what follows the stream is ignored.

    Raises InvalidArgument where there is nothing, where it is damaged, and where the data exceeds `limit` bytes; RequestMemoryFull where
    it has no room in `memory` beside what that holds.
    """
    if not body:
        raise InvalidArgument("nothing to be decompressed")
    remedy = "Use --http-max-input-size to increase the limit."
    return decompressed(body, limit, what="the request body", remedy=remedy, memory=memory)


def compress(parts: Iterable[bytes | memoryview], encoding: str) -> bytes:
    """Return `parts` as one stream in `encoding`, "gzip" or "deflate"."""
    stream = zlib.compressobj(wbits=_WINDOW_BITS[encoding])
    return b"".join([*[stream.compress(part) for part in parts], stream.flush()])
