"""Errors as gRPC says them: the one table from codes to status numbers, and texts that fit into a trailer."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple
from urllib.parse import quote

from tritonpy import Code, TritonError
from tritonpy_frontend_grpc.deadline import DeadlineExceeded

# The numbers are those of the gRPC specification, so that any transport can send them.
STATUS: Mapping[Code, int] = {
    Code.UNKNOWN: 2,  # UNKNOWN
    Code.INTERNAL: 13,  # INTERNAL
    Code.NOT_FOUND: 5,  # NOT_FOUND
    Code.INVALID_ARG: 3,  # INVALID_ARGUMENT
    Code.UNAVAILABLE: 14,  # UNAVAILABLE
    Code.UNSUPPORTED: 12,  # UNIMPLEMENTED
    Code.ALREADY_EXISTS: 6,  # ALREADY_EXISTS
    Code.CANCELLED: 1,  # CANCELLED
    Code.UNAUTHENTICATED: 16,  # UNAUTHENTICATED
    Code.PERMISSION_DENIED: 7,  # PERMISSION_DENIED
    Code.RESOURCE_EXHAUSTED: 8,  # RESOURCE_EXHAUSTED
    Code.CONFLICT: 10,  # ABORTED
}
DEADLINE_EXCEEDED = 4
_ALL = (
    "OK CANCELLED UNKNOWN INVALID_ARGUMENT DEADLINE_EXCEEDED NOT_FOUND ALREADY_EXISTS PERMISSION_DENIED RESOURCE_EXHAUSTED "
    "FAILED_PRECONDITION ABORTED OUT_OF_RANGE UNIMPLEMENTED INTERNAL UNAVAILABLE DATA_LOSS UNAUTHENTICATED"
)
NAMES = dict(enumerate(_ALL.split()))
"""What the specification calls each number."""
SHUTTING_DOWN = "GRPC server is shutting down and has stopped accepting new requests."

# Clients refuse trailers beyond 8 KiB, and the text travels percent-encoded among others.
_MAX_ENCODED = 6 * 1024
_PRINTABLE = "".join(map(chr, range(0x20, 0x7F))).replace("%", "")


class Outcome(NamedTuple):
    """How a call ended: the number of its status, what there is to say of it, and further trailers."""

    status: int
    text: str
    trailers: tuple[tuple[str, str], ...]


def outcome(error: TritonError) -> Outcome:
    """Return how a call ends that `error` ended, which loses its traceback: the frames in it hold the request."""
    error.__traceback__ = error.__context__ = error.__cause__ = None
    status = DEADLINE_EXCEEDED if isinstance(error, DeadlineExceeded) else STATUS[error.code]
    trailers = (("retry-after", error.retry_after),) if error.retry_after else ()
    return Outcome(status, status_text(error.message), trailers)


def status_text(text: str) -> str:
    """Return `text`, shortened at its end where a client could not receive it whole."""
    if len(text) * 12 <= _MAX_ENCODED:  # four bytes of UTF-8, three characters each, at the most
        return text
    kept = text[:_MAX_ENCODED]
    while len(quote(kept, safe=_PRINTABLE, errors="replace")) > _MAX_ENCODED:
        kept = kept[: len(kept) * 7 // 8]
    return text if kept == text else f"{kept} ..."
