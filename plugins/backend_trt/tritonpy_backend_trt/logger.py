"""What TensorRT says: it goes to the server's log, and the reason of a failure to whoever is told of the failure."""

from __future__ import annotations

import logging
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from typing import Any

log = logging.getLogger("tritonpy.tensorrt")
_LEVELS = {
    "INTERNAL_ERROR": logging.ERROR, "ERROR": logging.ERROR, "WARNING": logging.WARNING, "INFO": logging.INFO,
    "VERBOSE": logging.DEBUG,
}  # fmt: skip


class Said(threading.local):
    """The errors that TensorRT named on one thread, while somebody there wanted to know."""

    def __init__(self) -> None:
        self.errors: list[str] | None = None


_said = Said()


def heard(severity: str, text: str) -> None:
    """Take a message of TensorRT."""
    level = _LEVELS[severity]
    log.log(level, "%s", text)
    if level == logging.ERROR and _said.errors is not None:
        _said.errors.append(text)


@contextmanager
def listening() -> Iterator[list[str]]:
    """Yield the errors that TensorRT names on this thread from now on."""
    errors: list[str] = []
    before, _said.errors = _said.errors, errors
    try:
        yield errors
    finally:
        _said.errors = before


def reason(errors: list[str]) -> str:
    """Return the last of `errors`, as Triton does."""
    return errors[-1] if errors else "TensorRT gave no reason"


@cache
def logger_of(trt: Any) -> Any:
    """Return the process's `ILogger`: TensorRT keeps the first one that it sees."""

    class Logger(trt.ILogger):  # type: ignore[misc]
        def __init__(self) -> None:
            trt.ILogger.__init__(self)

        def log(self, severity: Any, text: str) -> None:
            heard(severity.name, text)

    return Logger()
