"""The output of a process that belongs to no single instance."""

from __future__ import annotations

import logging
import threading
from collections import deque

_TAIL = 20  # lines kept for the error of a process that died


class ProcessOutput:
    """Logs the lines of a pipe, in a thread that ends when the pipe is closed.

    `tail` contains the last lines.
    """

    def __init__(self, descriptor: int, log: logging.LoggerAdapter[logging.Logger]) -> None:
        self._descriptor = descriptor
        self._log = log
        self.tail: deque[str] = deque(maxlen=_TAIL)
        self._thread = threading.Thread(target=self._read, name="printed", daemon=True)
        self._thread.start()

    def wait(self, timeout_s: float) -> None:
        """Wait up to `timeout_s` until everything is logged.

        A child process may keep the pipe open.
        """
        self._thread.join(timeout_s)

    def _read(self) -> None:
        with open(self._descriptor, "rb") as pipe:
            for line in pipe:
                text = line.decode(errors="backslashreplace").rstrip()
                if text:
                    self.tail.append(text)
                    self._log.info("%s", text)
