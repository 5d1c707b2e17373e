"""Errors as HTTP: the one table from codes to statuses, and the one form of an error body."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from tritonpy import Code, TritonError

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

STOPPING = "Server is stopping, it has stopped accepting new requests"


def error_body(text: str) -> bytes:
    """Return the body of every error: `{"error":"<text>"}`; what UTF-8 cannot carry is replaced."""
    try:
        return msgspec.json.encode({"error": text})
    except UnicodeEncodeError:
        return msgspec.json.encode({"error": text.encode(errors="replace").decode()})


def retry_headers(error: TritonError) -> list[tuple[bytes, bytes]]:
    """Return the header that says when to try again, where the error knows."""
    return [(b"retry-after", error.retry_after.encode())] if error.retry_after else []
