"""HTTP representation of errors: status codes and error bodies."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from tritonpy import Code, InvalidArgument, TritonError
from tritonpy.frontend import RequestMemoryFull

STATUS: Mapping[Code, int] = {
    Code.UNKNOWN: 400,
    Code.INTERNAL: 500,
    Code.NOT_FOUND: 404,
    Code.INVALID_ARG: 400,
    Code.UNAVAILABLE: 503,
    Code.UNSUPPORTED: 501,
    Code.ALREADY_EXISTS: 400,
    Code.CANCELLED: 400,
    Code.UNAUTHENTICATED: 401,
    Code.PERMISSION_DENIED: 403,
    Code.RESOURCE_EXHAUSTED: 429,
    Code.CONFLICT: 412,
}


class BodyTooLarge(InvalidArgument):
    """A body exceeds a limit that Triton does not have, such as `max_body_bytes`."""

    def __init__(self, size: int, limit: int, remedy: str) -> None:
        super().__init__(
            f"The request body has {size} or more bytes, and the maximum is {limit} bytes. {remedy}"
        )


def status_of(error: TritonError) -> int:
    """Return the HTTP status for an error."""
    if isinstance(error, BodyTooLarge):
        return 413
    return 503 if isinstance(error, RequestMemoryFull) else STATUS[error.code]


STOPPING = "Server is stopping, it has stopped accepting new requests"


def error_body(text: str) -> bytes:
    """Return an error body, `{"error":"<text>"}`.

    Characters that UTF-8 cannot encode are replaced.
    """
    try:
        return msgspec.json.encode({"error": text})
    except UnicodeEncodeError:
        return msgspec.json.encode({"error": text.encode(errors="replace").decode()})


def retry_headers(error: TritonError) -> list[tuple[bytes, bytes]]:
    """Return the Retry-After header, if the error has a delay."""
    return [(b"retry-after", error.retry_after.encode())] if error.retry_after else []
