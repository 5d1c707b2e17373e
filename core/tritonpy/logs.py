"""Logging: three line formats, four switches, and one handler that can be changed at run time.

Code logs to `logging.getLogger("tritonpy.…")`. A record may have the attributes `model`,
`request_id`, `version` and `instance`. The json format writes them as fields; every format shows
the model and the request id. A record may have a `table`, a text of several lines that is printed
unchanged. If it has `models`, a list, the json format writes that instead.
"""

from __future__ import annotations

import json
import logging
import os
import sys
import threading
import traceback
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, TextIO

from tritonpy_config.server.log_settings import LogChanges, LogSettings
from tritonpy_types.errors import StartupError

LOGGER = "tritonpy"
LOG_FIELDS = ("model", "version", "instance", "request_id")
ESCAPE_VARIABLE = "TRITON_SERVER_ESCAPE_LOG_MESSAGES"
"""Triton's variable. 0 writes messages unescaped, with their line breaks.

Data of a client can then start a new line.
"""
LONGEST_TEXT = 16 * 1024
"""Most characters of a message or a traceback that are logged.

Both may contain data of clients or models.
"""


class LineFormatter(logging.Formatter):
    """Formats Triton's lines: `I1121 09:35:00.123456 12345 file.py:12] "text"`.

    With `iso8601` a line starts with an ISO 8601 time. Times are UTC. Without `escape` the text is
    neither quoted nor escaped. With `color` the head of a line has the color of its level, for a
    terminal.
    """

    def __init__(self, iso8601: bool, *, escape: bool = True, color: bool = False) -> None:
        super().__init__()
        self._iso8601 = iso8601
        self._escape = escape
        self._color = color

    def format(self, record: logging.LogRecord) -> str:
        """Return the line; a table or a traceback follows on separate lines."""
        time, letter = datetime.fromtimestamp(record.created, UTC), _letter(record.levelno)
        stamp = (
            f"{time:%Y-%m-%dT%H:%M:%SZ} {letter}"
            if self._iso8601
            else f"{letter}{time:%m%d %H:%M:%S.%f}"
        )
        text = shortened(record.getMessage())
        request_id, model = getattr(record, "request_id", ""), getattr(record, "model", "")
        if request_id and not text.startswith("[request id:"):
            text = f"[request id: {request_id}] {text}"
        if model:
            text = f"[model: {model}] {text}"
        head = f"{stamp} {record.process} {record.filename}:{record.lineno}]"
        if self._color:
            head = f"\x1b[{_COLORS[letter]}m{head}\x1b[0m"
        # quoted, so that no data of a client can start a new line
        line = f"{head} {json.dumps(text, ensure_ascii=False) if self._escape else text}"
        table, error = getattr(record, "table", ""), _traceback(record)
        return "\n".join(part for part in (line, table, error) if part)


_COLORS = {"E": "31", "W": "33", "I": "2"}  # red, yellow, faint


def _colored(file: TextIO | None) -> bool:
    """Return whether lines may have colors: on a terminal, unless NO_COLOR is set.

    See https://no-color.org.
    """
    return (
        file is None
        and not os.environ.get("NO_COLOR")
        and os.environ.get("TERM") != "dumb"
        and sys.stderr.isatty()
    )


def terminal_columns() -> int:
    """Return the width of the terminal that receives the log; 0 if none does."""
    handler = _installed()
    if (handler is not None and handler.settings.file) or not sys.stderr.isatty():
        return 0
    try:
        return os.get_terminal_size(sys.stderr.fileno()).columns
    except OSError:
        return 0


def _letter(level: int) -> str:
    if level >= logging.ERROR:
        return "E"
    return "W" if level >= logging.WARNING else "I"  # verbose lines, too


class JsonFormatter(logging.Formatter):
    """Formats a record as a line of JSON: time, level, logger, message and other fields."""

    def format(self, record: logging.LogRecord) -> str:
        """Return the JSON object."""
        time = datetime.fromtimestamp(record.created, UTC)
        line: dict[str, Any] = {
            "time": f"{time:%Y-%m-%dT%H:%M:%S.%f}Z",
            "level": record.levelname,
            "logger": record.name,
            "message": shortened(record.getMessage()),
        }
        whole = "models" if hasattr(record, "models") else "table"
        line |= {
            name: getattr(record, name) for name in (*LOG_FIELDS, whole) if hasattr(record, name)
        }
        error = _traceback(record)
        if error:
            line["exception"] = error
        return json.dumps(line, default=str)


def _traceback(record: logging.LogRecord) -> str:
    if not record.exc_info or record.exc_info[1] is None:
        return ""
    return shortened("".join(traceback.format_exception(record.exc_info[1])).rstrip("\n"))


def shortened(text: str, most: int = LONGEST_TEXT) -> str:
    """Return `text` without its middle part if it has more than `most` characters."""
    if len(text) <= most:
        return text
    half = most // 2
    return f"{text[:half]} [... {len(text) - 2 * half} characters left out ...] {text[-half:]}"


class ServerLogHandler(logging.Handler):
    """Writes all log lines of the process; any thread may call `configure` at any time."""

    def __init__(self) -> None:
        super().__init__()
        self.settings = LogSettings()
        self._file: TextIO | None = None

    def configure(self, settings: LogSettings) -> None:
        """Apply `settings` from the next line on.

        Raises StartupError if the log file cannot be opened.
        """
        with self.lock or threading.RLock():
            if settings.file != self.settings.file:
                opened = _open(settings.file)
                self._close_file()
                self._file = opened
            self.settings = settings
            self.setFormatter(self._formatter(settings))
        logging.getLogger(LOGGER).setLevel(settings.threshold())

    def _formatter(self, settings: LogSettings) -> logging.Formatter:
        if settings.format == "json":
            return JsonFormatter()
        escape = os.environ.get(ESCAPE_VARIABLE) != "0"
        return LineFormatter(
            settings.format == "ISO8601", escape=escape, color=_colored(self._file)
        )

    def emit(self, record: logging.LogRecord) -> None:
        """Write one line; errors are reported on standard error, as logging does."""
        if not self.settings.admits(record.levelno):
            return
        try:
            stream = self._file or sys.stderr
            # a lone surrogate, which a client can send, cannot be encoded
            line = self.format(record).encode("utf-8", "backslashreplace").decode()
            stream.write(f"{line}\n")
            stream.flush()
        except Exception:
            self.handleError(record)

    def close(self) -> None:
        """Close the log file, if any."""
        self._close_file()
        super().close()

    def _close_file(self) -> None:
        if self._file is not None:
            self._file.close()
            self._file = None


def _open(file: str) -> TextIO | None:
    if not file:
        return None
    try:
        return Path(file).open("a", encoding="utf-8")
    except OSError as error:
        raise StartupError(
            f"cannot write the log file '{file}': {error.strerror}; choose another --log-file"
        ) from error


def configure_logging(settings: LogSettings) -> ServerLogHandler:
    """Send the log lines of this process, including those of libraries, to the configured output.

    Call it again to change the settings.
    """
    handler = _installed()
    if handler is None:
        handler = ServerLogHandler()
        logging.getLogger().addHandler(handler)
    handler.configure(settings)
    return handler


def log_settings() -> LogSettings:
    """Return the log settings of this process.

    In a program with its own handlers these are the last requested settings.
    """
    handler = _installed()
    return _requested if handler is None else handler.settings


def change_logging(changes: LogChanges) -> None:
    """Apply `changes` from the next line on; in a program with its own handlers only the level."""
    global _requested
    settings = changes.applied_to(log_settings())
    handler = _installed()
    if handler is not None:
        handler.configure(settings)
    else:
        _requested = settings
        logging.getLogger(LOGGER).setLevel(settings.threshold())
    for callback in _followers:
        callback(settings)


def follow_log_settings(callback: Callable[[LogSettings], None]) -> Callable[[], None]:
    """Call `callback` after each change; return a function that ends this.

    The thread that makes the change calls it. It must not raise.
    """
    global _followers
    _followers = (*_followers, callback)

    def end() -> None:
        global _followers
        _followers = tuple(each for each in _followers if each is not callback)

    return end


_requested = LogSettings()
_followers: tuple[Callable[[LogSettings], None], ...] = ()


def _installed() -> ServerLogHandler | None:
    return next(
        (each for each in logging.getLogger().handlers if isinstance(each, ServerLogHandler)), None
    )


def log_uncaught_exceptions() -> None:
    """Log uncaught exceptions of any thread, once and with a traceback."""
    log = logging.getLogger(LOGGER)

    def in_thread(arguments: threading.ExceptHookArgs) -> None:
        name = arguments.thread.name if arguments.thread else "a thread"
        error = arguments.exc_value
        log.error("uncaught exception in %s: %r", name, error, exc_info=error)

    def in_main(kind: type[BaseException], error: BaseException, trace: Any) -> None:
        if issubclass(kind, KeyboardInterrupt):
            sys.__excepthook__(kind, error, trace)
        else:
            log.error("uncaught exception: %r", error, exc_info=error)

    threading.excepthook = in_thread
    sys.excepthook = in_main
