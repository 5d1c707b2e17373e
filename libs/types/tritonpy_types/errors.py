"""The exception classes of the server.

    TritonError                code UNKNOWN; the first eight codes are Triton's
    ├── Internal               INTERNAL
    ├── NotFound               NOT_FOUND
    ├── InvalidArgument        INVALID_ARG
    │   └── InvalidConfig      a model configuration with all its problems (tritonpy.config)
    ├── Unavailable            UNAVAILABLE
    │   ├── QueueFull          a queue policy refused the request
    │   └── QueueTimeout       a request waited longer than its queue policy allows
    ├── Unsupported            UNSUPPORTED
    │   └── DecoupledRefused   the caller takes exactly one response, the model sends 0..n
    ├── AlreadyExists          ALREADY_EXISTS
    ├── Cancelled              CANCELLED
    ├── Unauthenticated        UNAUTHENTICATED
    ├── PermissionDenied       PERMISSION_DENIED
    ├── ResourceExhausted      RESOURCE_EXHAUSTED
    └── Conflict               CONFLICT
    StartupError               the server cannot be built as configured; never sent to a client
    └── PluginError            a plugin is missing, broken or conflicts with another

The text of a TritonError is sent to clients. Each frontend maps `Code` to the status codes of its
protocol.
"""

from __future__ import annotations

import enum
from math import ceil
from typing import ClassVar


class Code(enum.IntEnum):
    """Triton's error codes in the order of its C API, followed by the codes of this server."""

    UNKNOWN = 0
    INTERNAL = 1
    NOT_FOUND = 2
    INVALID_ARG = 3
    UNAVAILABLE = 4
    UNSUPPORTED = 5
    ALREADY_EXISTS = 6
    CANCELLED = 7
    UNAUTHENTICATED = 8
    PERMISSION_DENIED = 9
    RESOURCE_EXHAUSTED = 10
    CONFLICT = 11


class FailureReason(enum.Enum):
    """The label `reason` of the failure counter."""

    REJECTED = "REJECTED"
    CANCELED = "CANCELED"
    BACKEND = "BACKEND"
    OTHER = "OTHER"


class TritonError(Exception):
    """An error whose text may be sent to the client."""

    code: ClassVar[Code] = Code.UNKNOWN
    reason: FailureReason = FailureReason.OTHER
    retry_after_s: float | None = None
    """Seconds after which the caller may retry, if known."""

    def __init__(self, message: str, reason: FailureReason | None = None) -> None:
        super().__init__(message)
        self.message = message
        if reason is not None:
            self.reason = reason

    def with_request_id(self, request_id: str) -> TritonError:
        """Return the same error with Triton's request prefix: `[request id: X] text`."""
        error = type(self)(
            f"[request id: {request_id or '<id_unknown>'}] {self.message}", self.reason
        )
        error.retry_after_s = self.retry_after_s
        return error

    @property
    def retry_after(self) -> str:
        """`retry_after_s` in whole seconds for the Retry-After header; empty if unknown."""
        return "" if self.retry_after_s is None else str(max(1, ceil(self.retry_after_s)))


class Internal(TritonError):
    """The server or a model failed."""

    code = Code.INTERNAL


class NotFound(TritonError):
    """The requested object does not exist."""

    code = Code.NOT_FOUND


class InvalidArgument(TritonError):
    """The request or a configuration is invalid."""

    code = Code.INVALID_ARG


class Unavailable(TritonError):
    """The object exists and cannot serve now; it may in `retry_after_s` seconds, if known."""

    code = Code.UNAVAILABLE

    def __init__(
        self, message: str, reason: FailureReason | None = None, retry_after_s: float | None = None
    ) -> None:  # fmt: skip
        super().__init__(message, reason)
        if retry_after_s is not None:
            self.retry_after_s = retry_after_s


class QueueFull(Unavailable):
    """A queue policy refused the request."""

    reason = FailureReason.REJECTED


class QueueTimeout(Unavailable):
    """A request waited longer than its queue policy allows."""

    reason = FailureReason.REJECTED


class Unsupported(TritonError):
    """The server does not support this, by design or by configuration."""

    code = Code.UNSUPPORTED


class DecoupledRefused(Unsupported):
    """The caller takes exactly one response, and the model sends any number."""


class AlreadyExists(TritonError):
    """The name is in use."""

    code = Code.ALREADY_EXISTS


class Cancelled(TritonError):
    """The request was cancelled by its client."""

    code = Code.CANCELLED
    reason = FailureReason.CANCELED


class Unauthenticated(TritonError):
    """The credentials are missing or unknown."""

    code = Code.UNAUTHENTICATED


class PermissionDenied(TritonError):
    """The principal does not have the right to make this call."""

    code = Code.PERMISSION_DENIED


class ResourceExhausted(TritonError):
    """The caller has used up its quota; it may retry in `retry_after_s` seconds."""

    code = Code.RESOURCE_EXHAUSTED
    reason = FailureReason.REJECTED

    def __init__(
        self, message: str, reason: FailureReason | None = None, retry_after_s: float = 1.0
    ) -> None:
        super().__init__(message, reason)
        self.retry_after_s = retry_after_s


class Conflict(TritonError):
    """The object was changed since the caller read it."""

    code = Code.CONFLICT


_BY_CODE: dict[Code, type[TritonError]] = {
    kind.code: kind
    for kind in (
        TritonError,
        Internal,
        NotFound,
        InvalidArgument,
        Unavailable,
        Unsupported,
        AlreadyExists,
        Cancelled,
        Unauthenticated,
        PermissionDenied,
        ResourceExhausted,
        Conflict,
    )
}


def error_of(code: Code | int, message: str, reason: FailureReason | None = None) -> TritonError:
    """Return the error class of `code` with `message`; restores errors of other processes."""
    return _BY_CODE[Code(code)](message, reason)


def exception_text(error: BaseException) -> str:
    """Return the text of an exception for users.

    It is the message, preceded by the type's name unless it is a TritonError.
    """
    if isinstance(error, TritonError):
        return error.message
    name = type(error).__name__
    try:
        message = str(error)
    except Exception:  # its __str__ raised
        message = ""
    return f"{name}: {message}" if message else name


class StartupError(Exception):
    """The server cannot be built as configured."""


class PluginError(StartupError):
    """A plugin is missing, broken or conflicts with another."""
