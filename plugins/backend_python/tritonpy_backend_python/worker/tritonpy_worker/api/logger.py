"""The server's log."""

from __future__ import annotations

from .. import host
from .arguments import argument_type_error, text
from .enumeration import Enumeration


class Logger:
    """Writes to the server's log, whose settings filter the levels.

    Raises `TypeError` for non-strings.
    """

    __module__ = "c_python_backend_utils"

    class LogLevel(Enumeration):
        """Log levels with Triton's numbers."""

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
        """Log a message at any level."""
        line = text(message)
        if line is None or not isinstance(level, Logger.LogLevel):
            signature = "level: c_python_backend_utils.Logger.LogLevel = <LogLevel.INFO: 0>"
            raise argument_type_error("log", f"(message: str, {signature}) -> None", message, level)
        host.current().log(level.name, line)

    @staticmethod
    def log_info(message: str) -> None:
        """Log information."""
        _log("log_info", Logger.LogLevel.INFO, message)

    @staticmethod
    def log_warn(message: str) -> None:
        """Log a warning."""
        _log("log_warn", Logger.LogLevel.WARNING, message)

    @staticmethod
    def log_error(message: str) -> None:
        """Log an error."""
        _log("log_error", Logger.LogLevel.ERROR, message)

    @staticmethod
    def log_verbose(message: str) -> None:
        """Log a debugging message."""
        _log("log_verbose", Logger.LogLevel.VERBOSE, message)


def _log(function: str, level: Logger.LogLevel, message: str) -> None:
    line = text(message)
    if line is None:
        raise argument_type_error(function, "(message: str) -> None", message)
    host.current().log(level.name, line)
