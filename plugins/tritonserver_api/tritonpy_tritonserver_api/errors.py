"""The exceptions of the API, one for each error code of Triton but CANCELLED."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import tritonpy


class TritonError(Exception):
    """The base of all errors of the API."""


class UnknownError(TritonError):
    """An error without a code, or with one that the API does not have, such as a cancellation."""


class InternalError(TritonError):
    """A fault of the server, of a backend or of a model."""


class NotFoundError(TritonError):
    """The requested object does not exist."""


class InvalidArgumentError(TritonError):
    """An argument, a request or a configuration is invalid."""


class UnavailableError(TritonError):
    """The server or the model does not serve now."""


class UnsupportedError(TritonError):
    """The operation is not supported."""


class AlreadyExistsError(TritonError):
    """The object exists already."""


EXCEPTIONS = (
    TritonError, NotFoundError, UnknownError, InternalError, InvalidArgumentError,
    UnavailableError, AlreadyExistsError, UnsupportedError,
)  # fmt: skip
for _exception in EXCEPTIONS:
    _exception.__module__ = "tritonserver"

_BY_CODE: dict[tritonpy.Code, type[TritonError]] = {
    tritonpy.Code.INTERNAL: InternalError,
    tritonpy.Code.NOT_FOUND: NotFoundError,
    tritonpy.Code.INVALID_ARG: InvalidArgumentError,
    tritonpy.Code.UNAVAILABLE: UnavailableError,
    tritonpy.Code.UNSUPPORTED: UnsupportedError,
    tritonpy.Code.ALREADY_EXISTS: AlreadyExistsError,
}


def error_of(error: tritonpy.TritonError) -> TritonError:
    """Return an error of the server as one of the API, with the same text."""
    if error.message.startswith("Request for unknown model"):  # another code in the C interface
        return NotFoundError(error.message)
    return _BY_CODE.get(error.code, UnknownError)(error.message)


@contextmanager
def translated() -> Iterator[None]:
    """Raise errors of the server as those of the API. A server that cannot start is internal."""
    try:
        yield
    except tritonpy.TritonError as error:
        raise error_of(error) from error
    except tritonpy.StartupError as error:
        raise InternalError(str(error)) from error
