"""gRPC representation of errors: status codes and texts that fit into a trailer."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple
from urllib.parse import quote

from tritonpy import Code, TritonError
from tritonpy_frontend_grpc.deadline import DeadlineExceeded

# Numbers from the gRPC specification, for use with any transport.
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
    "OK CANCELLED UNKNOWN INVALID_ARGUMENT DEADLINE_EXCEEDED NOT_FOUND ALREADY_EXISTS "
    "PERMISSION_DENIED RESOURCE_EXHAUSTED "
    "FAILED_PRECONDITION ABORTED OUT_OF_RANGE UNIMPLEMENTED INTERNAL UNAVAILABLE DATA_LOSS "
    "UNAUTHENTICATED"
)
NAMES = dict(enumerate(_ALL.split()))
"""The name of each status code in the specification."""
SHUTTING_DOWN = "GRPC server is shutting down and has stopped accepting new requests."

# Clients reject trailers beyond 8 KiB in total; the text is sent percent-encoded.
_MAX_ENCODED = 6 * 1024
_PRINTABLE = "".join(map(chr, range(0x20, 0x7F))).replace("%", "")


class RpcStatus(NamedTuple):
    """The status of a call that ended with an error: code, text and further trailers."""

    status: int
    text: str
    trailers: tuple[tuple[str, str], ...]


def rpc_status(error: TritonError) -> RpcStatus:
    """Return the status for `error`, and clear its traceback, whose frames hold the request."""
    error.__traceback__ = error.__context__ = error.__cause__ = None
    status = DEADLINE_EXCEEDED if isinstance(error, DeadlineExceeded) else STATUS[error.code]
    trailers = (("retry-after", error.retry_after),) if error.retry_after else ()
    return RpcStatus(status, status_text(error.message), trailers)


def status_text(text: str) -> str:
    """Return `text`, truncated if it is too long for clients."""
    if len(text) * 12 <= _MAX_ENCODED:  # at most four bytes of UTF-8 of three characters each
        return text
    kept = text[:_MAX_ENCODED]
    while len(quote(kept, safe=_PRINTABLE, errors="replace")) > _MAX_ENCODED:
        kept = kept[: len(kept) * 7 // 8]
    return text if kept == text else f"{kept} ..."
