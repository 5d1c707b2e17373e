"""How much of an inference call's body is worth keeping: a body that will be refused for its size need not be in memory first."""

from __future__ import annotations

from collections.abc import Mapping

from tritonpy import InvalidArgument
from tritonpy_frontend_http.compression import request_encoding
from tritonpy_frontend_http.decode import check_json_size
from tritonpy_frontend_http.errors import BodyTooLarge
from tritonpy_frontend_http.raw_request import check_raw_size

_LENGTH = b"inference-header-content-length"
_LONGEST_NUMBER = 19
_RAISE = "Use max_body_bytes under 'frontends: http:' to increase the limit."


def unlimited(headers: Mapping[bytes, bytes], limit: int) -> bool:
    """Say whether a body may have any size: binary tensors behind a JSON header that is within the limit, not compressed."""
    length = headers.get(_LENGTH, b"")
    if (
        headers.get(b"content-encoding", b"") not in {b"", b"identity"}
        or not length.isdigit()
        or len(length) > _LONGEST_NUMBER
    ):
        return False
    return 0 < int(length) <= limit


def announced_size(headers: Mapping[bytes, bytes]) -> int:
    """Return the size of a body as its head says it, 0 where that says nothing; the parser has refused what is no number."""
    return int(headers.get(b"content-length", b"0"))


def check_body_size(size: int, most: int) -> None:
    """Raise BodyTooLarge for a body of more than `most` bytes; 0 for any number."""
    if 0 < most < size:
        raise BodyTooLarge(size, most, _RAISE)


def refuse_size(headers: Mapping[bytes, bytes], size: int, limit: int) -> None:
    """Raise InvalidArgument for a body of `size` bytes, more than `limit`, that is not `unlimited`; Unsupported for its compression."""
    if request_encoding(headers.get(b"content-encoding")):
        raise InvalidArgument(
            f"Compressed data size ({size} bytes) exceeds the maximum allowed value of {limit} bytes. "
            "Use --http-max-input-size to increase the limit."
        )
    length = headers.get(_LENGTH, b"")
    if length == b"0":
        check_raw_size(size, limit)
    given = length.isdigit() and len(length) <= _LONGEST_NUMBER
    check_json_size(int(length) if given else size, limit)
