"""Error values of responses, and the exception of the API."""

from __future__ import annotations

from .arguments import argument_type_error, text
from .enumeration import Enumeration


class TritonModelException(Exception):
    """Raised by the API for a bad argument or if the server rejects a request."""

    __module__ = "c_python_backend_utils"


class ErrorCode(Enumeration):
    """Triton's error codes and numbers. Additional codes of the server map to one of them."""

    UNKNOWN = 0
    INTERNAL = 1
    NOT_FOUND = 2
    INVALID_ARG = 3
    UNAVAILABLE = 4
    UNSUPPORTED = 5
    ALREADY_EXISTS = 6
    CANCELLED = 7

    @classmethod
    def _missing_(cls, value: object) -> ErrorCode | None:
        codes: dict[object, ErrorCode] = {
            8: cls.INVALID_ARG,
            9: cls.INVALID_ARG,
            10: cls.UNAVAILABLE,
            11: cls.INVALID_ARG,
        }
        return codes.get(value)


ErrorCode.__name__ = "__ErrorCode"  # so that it prints like Triton's

_SIGNATURE = (
    "c_python_backend_utils.TritonError(message: str, "
    "code: c_python_backend_utils.TritonError.__ErrorCode = <__ErrorCode.INTERNAL: 1>)"
)


class TritonError:
    """The error of a response."""

    __module__ = "c_python_backend_utils"
    __slots__ = ("__weakref__", "_code", "_message")

    UNKNOWN = ErrorCode.UNKNOWN
    INTERNAL = ErrorCode.INTERNAL
    NOT_FOUND = ErrorCode.NOT_FOUND
    INVALID_ARG = ErrorCode.INVALID_ARG
    UNAVAILABLE = ErrorCode.UNAVAILABLE
    UNSUPPORTED = ErrorCode.UNSUPPORTED
    ALREADY_EXISTS = ErrorCode.ALREADY_EXISTS
    CANCELLED = ErrorCode.CANCELLED

    def __init__(self, message: str, code: ErrorCode = ErrorCode.INTERNAL) -> None:
        """Raises `TypeError` if the message is not a string or the code is not an `ErrorCode`."""
        message_text = text(message)
        if message_text is None or not isinstance(code, ErrorCode):
            raise argument_type_error("__init__", _SIGNATURE, message, code)
        self._message = message_text
        self._code = code

    def code(self) -> ErrorCode:
        """Return the error code."""
        return self._code

    def message(self) -> str:
        """Return the error text."""
        return self._message
