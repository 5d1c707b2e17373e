"""Log forwarding: the server writes the log records of a worker process."""

from __future__ import annotations

import logging
import traceback
from collections.abc import Callable
from typing import Any

from tritonpy.execution import LOG_FIELDS, LOGGER
from tritonpy_ipc.channel import ChannelClosed

_EVERY_LEVEL = 1


class ServerHandler(logging.StreamHandler[Any]):
    """Sends each record with `notify`; in a forked process it writes to standard error."""

    def __init__(self, notify: Callable[..., None]) -> None:
        super().__init__()
        self._notify = notify

    def emit(self, record: logging.LogRecord) -> None:
        """Send one record; failures are reported on standard error, as usual in `logging`."""
        try:
            self._notify("log_record", **_record_fields(record))
        except ChannelClosed:
            super().emit(record)
        except Exception:
            self.handleError(record)


def send_log_to(notify: Callable[..., None]) -> None:
    """Forward all log records of this process, including those of libraries, to the server.

    The server's log settings, which may change, decide which records are kept.
    """
    logging.getLogger().addHandler(ServerHandler(notify))
    logging.getLogger(LOGGER).setLevel(_EVERY_LEVEL)


def _record_fields(record: logging.LogRecord) -> dict[str, Any]:
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
        "fields": {name: getattr(record, name) for name in LOG_FIELDS if hasattr(record, name)},
    }
