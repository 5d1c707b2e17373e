"""Compression of bodies with gzip and deflate: `Content-Encoding` and `Accept-Encoding`."""

from __future__ import annotations

import zlib
from collections.abc import Iterable

from tritonpy import InvalidArgument, Unsupported
from tritonpy.frontend import Reservation, decompressed

_WINDOW_BITS = {"gzip": 31, "deflate": 15}  # zlib: 15 bits of window; + 16 writes gzip's frame
SUPPORTED = b"gzip, deflate"


class UnsupportedEncoding(Unsupported):
    """The request has an unknown Content-Encoding. The response lists the supported ones."""


def request_encoding(header: bytes | None) -> str:
    """Return the encoding of a request body, "" if it is not compressed.

    Raises UnsupportedEncoding.
    """
    if not header or header == b"identity":
        return ""
    encoding = header.decode("latin-1")
    if encoding not in _WINDOW_BITS:
        raise UnsupportedEncoding("Unsupported compression type")
    return encoding


def response_encoding(header: bytes | None) -> str:
    """Return the encoding with the greatest weight in an `Accept-Encoding` header, "" for none.

    Among equal weights the first one wins. As in Triton, `*` and entries with an invalid weight
    are ignored.
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
    """Return the data of a gzip or zlib stream; bytes after the stream are ignored.

    Raises InvalidArgument if the body is empty or damaged, or if the data exceeds `limit` bytes.
    Raises RequestMemoryFull if `memory` cannot grow by the size of the data.
    """
    if not body:
        raise InvalidArgument("nothing to be decompressed")
    remedy = "Use --http-max-input-size to increase the limit."
    return decompressed(body, limit, name="the request body", remedy=remedy, memory=memory)


def compress(parts: Iterable[bytes | memoryview], encoding: str) -> bytes:
    """Return `parts` as one stream in `encoding`, "gzip" or "deflate"."""
    stream = zlib.compressobj(wbits=_WINDOW_BITS[encoding])
    return b"".join([*[stream.compress(part) for part in parts], stream.flush()])
