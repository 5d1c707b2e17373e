"""The exception that the client raises."""

from __future__ import annotations

from tritonpy import TritonError


class InferenceServerException(Exception):
    """An error of the server or of the client's use, like tritonclient's class of this name."""

    def __init__(self, msg: str, status: str | None = None) -> None:
        super().__init__(msg)
        self._message = msg
        self._status = status

    def __str__(self) -> str:
        return f"[{self._status}] {self._message}" if self._status else self._message

    def message(self) -> str:
        """Return the error's text."""
        return self._message

    def status(self) -> str | None:
        """Return the name of the server's error code (`INVALID_ARG`, `NOT_FOUND`, …).

        None means that the client was used incorrectly.
        """
        return self._status

    @classmethod
    def of(cls, error: TritonError) -> InferenceServerException:
        """Return the exception for an error of the server."""
        return cls(error.message, error.code.name)
