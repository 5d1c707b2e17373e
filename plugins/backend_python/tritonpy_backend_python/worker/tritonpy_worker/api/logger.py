"""The server's log."""

from __future__ import annotations

from .. import host
from .arguments import mismatch, text
from .enumeration import Enumeration


class Logger:
    """Writes to the server's log, whose settings decide what is kept. Raises TypeError for what is no text."""

    __module__ = "c_python_backend_utils"

    class LogLevel(Enumeration):
        """Levels, with Triton's numbers."""

        INFO = 0
        WARNING = 1
        ERROR = 2
        VERBOSE = 3

    INFO = LogLevel.INFO
    WARNING = LogLevel.WARNING
    ERROR = LogLevel.ERROR
    VERBOSE = LogLevel.VERBOSE

    @staticmethod
    def log(message: str, level: LogLevel = LogLevel.INFO) -> None:
        """Write at any level."""
        line = text(message)
        if line is None or not isinstance(level, Logger.LogLevel):
            signature = "level: c_python_backend_utils.Logger.LogLevel = <LogLevel.INFO: 0>"
            raise mismatch("log", f"(message: str, {signature}) -> None", message, level)
        host.current().log(level.name, line)

    @staticmethod
    def log_info(message: str) -> None:
        """Write what is worth knowing."""
        _log("log_info", Logger.LogLevel.INFO, message)

    @staticmethod
    def log_warn(message: str) -> None:
        """Write what may become a problem."""
        _log("log_warn", Logger.LogLevel.WARNING, message)

    @staticmethod
    def log_error(message: str) -> None:
        """Write what went wrong."""
        _log("log_error", Logger.LogLevel.ERROR, message)

    @staticmethod
    def log_verbose(message: str) -> None:
        """Write what helps to find a fault."""
        _log("log_verbose", Logger.LogLevel.VERBOSE, message)


def _log(function: str, level: Logger.LogLevel, message: str) -> None:
    line = text(message)
    if line is None:
        raise mismatch(function, "(message: str) -> None", message)
    host.current().log(level.name, line)
