"""TensorRT's log messages: forwarded to the server's log, and collected as failure reasons."""

from __future__ import annotations

import logging
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from typing import Any

log = logging.getLogger("tritonpy.tensorrt")
_LEVELS = {
    "INTERNAL_ERROR": logging.ERROR, "ERROR": logging.ERROR, "WARNING": logging.WARNING,
    "INFO": logging.INFO,
    "VERBOSE": logging.DEBUG,
}  # fmt: skip


class ThreadErrors(threading.local):
    """The errors that TensorRT logs on one thread while they are collected."""

    def __init__(self) -> None:
        self.errors: list[str] | None = None


_thread_errors = ThreadErrors()


def log_message(severity: str, text: str) -> None:
    """Forward a message of TensorRT to the log."""
    level = _LEVELS[severity]
    log.log(level, "%s", text)
    if level == logging.ERROR and _thread_errors.errors is not None:
        _thread_errors.errors.append(text)


@contextmanager
def collect_errors() -> Iterator[list[str]]:
    """Yield a list that receives the errors that TensorRT logs on this thread."""
    errors: list[str] = []
    before, _thread_errors.errors = _thread_errors.errors, errors
    try:
        yield errors
    finally:
        _thread_errors.errors = before


def last_error(errors: list[str]) -> str:
    """Return the last of `errors`, as Triton does."""
    return errors[-1] if errors else "TensorRT reported no reason"


@cache
def get_logger(trt: Any) -> Any:
    """Return the process's `ILogger`; TensorRT keeps the first one that it receives."""

    class Logger(trt.ILogger):  # type: ignore[misc]
        def __init__(self) -> None:
            trt.ILogger.__init__(self)

        def log(self, severity: Any, text: str) -> None:
            log_message(severity.name, text)

    return Logger()
