"""Size limits of inference bodies, applied before an oversized body is in memory."""

from __future__ import annotations

from collections.abc import Mapping

from tritonpy import InvalidArgument
from tritonpy_http_api.compression import request_encoding
from tritonpy_http_api.decode import check_json_size
from tritonpy_http_api.errors import BodyTooLarge
from tritonpy_http_api.raw_request import check_raw_size

MAX_CHUNKS = 65536  # of a chunked body, as in Triton
TOO_MANY_CHUNKS = (
    f"Chunked request body exceeds maximum of {MAX_CHUNKS} non-empty chunks. "
    "Send fewer or larger HTTP chunks."
)
_LENGTH = b"inference-header-content-length"
_MAX_DIGITS = 19
_REMEDY = "Use max_body_bytes under 'frontends: http:' to increase the limit."


def is_unlimited(headers: Mapping[bytes, bytes], limit: int) -> bool:
    """Return whether a body may have any size.

    True if the body is not compressed and its JSON header has 1 to `limit` bytes: the tensors that
    follow are binary.
    """
    length = headers.get(_LENGTH, b"")
    if (
        headers.get(b"content-encoding", b"") not in {b"", b"identity"}
        or not length.isdigit()
        or len(length) > _MAX_DIGITS
    ):
        return False
    return 0 < int(length) <= limit


def declared_size(headers: Mapping[bytes, bytes]) -> int:
    """Return the Content-Length, 0 if there is none.

    The parser has already rejected invalid numbers.
    """
    return int(headers.get(b"content-length", b"0"))


def check_body_size(size: int, most: int) -> None:
    """Raise BodyTooLarge if `size` exceeds `most` bytes; 0 means no limit."""
    if 0 < most < size:
        raise BodyTooLarge(size, most, _REMEDY)


def refuse_size(headers: Mapping[bytes, bytes], size: int, limit: int) -> None:
    """Raise InvalidArgument with Triton's text for a body of `size` bytes, which exceeds `limit`.

    Raises Unsupported if its compression is unknown.
    """
    if request_encoding(headers.get(b"content-encoding")):
        raise InvalidArgument(
            f"Compressed data size ({size} bytes) exceeds the maximum allowed value of {limit} "
            "bytes. "
            "Use --http-max-input-size to increase the limit."
        )
    length = headers.get(_LENGTH, b"")
    if length == b"0":
        check_raw_size(size, limit)
    given = length.isdigit() and len(length) <= _MAX_DIGITS
    check_json_size(int(length) if given else size, limit)
