"""The log of a worker process: its lines go to the server, which writes them."""

from __future__ import annotations

import logging
import traceback
from collections.abc import Callable
from typing import Any

from tritonpy.ipc.channel import ChannelClosed
from tritonpy.logs import FIELDS, LOGGER

_EVERY_LEVEL = 1


class ServerHandler(logging.StreamHandler[Any]):
    """Hands each record to `tell`; in a process that the model forked it goes to standard error."""

    def __init__(self, tell: Callable[..., None]) -> None:
        super().__init__()
        self._tell = tell

    def emit(self, record: logging.LogRecord) -> None:
        """Send one record; a handler that cannot says so on standard error, as logging does."""
        try:
            self._tell("log_record", **_said(record))
        except ChannelClosed:
            super().emit(record)
        except Exception:
            self.handleError(record)


def send_log_to(tell: Callable[..., None]) -> None:
    """Have everything that is logged in this process, by libraries too, written by the server: its settings, which may change, say what is kept."""
    logging.getLogger().addHandler(ServerHandler(tell))
    logging.getLogger(LOGGER).setLevel(_EVERY_LEVEL)


def _said(record: logging.LogRecord) -> dict[str, Any]:
    parts = [getattr(record, "table", "")]
    if record.exc_info and record.exc_info[1] is not None:
        parts.append("".join(traceback.format_exception(record.exc_info[1])).rstrip("\n"))
    return {
        "logger": record.name,
        "level": record.levelno,
        "message": record.getMessage(),
        "file": record.pathname,
        "line": record.lineno,
        "table": "\n".join(part for part in parts if part),
        "fields": {name: getattr(record, name) for name in FIELDS if hasattr(record, name)},
    }
