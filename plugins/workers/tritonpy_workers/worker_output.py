"""Output of a worker: the pipe behind its stdout and stderr."""

from __future__ import annotations

import asyncio
import logging
import os
from collections import deque

_CHUNK = 1 << 16
_MAX_CHUNKS = 16  # more than the largest pipe holds
_MAX_LINE = 1 << 16
TAIL = 20  # lines kept for the error of a worker that died


class WorkerOutput:
    """Reads a pipe on the event loop and logs its lines; `tail` holds the last ones."""

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        descriptor: int,
        log: logging.LoggerAdapter[logging.Logger],
    ) -> None:
        self.tail: deque[str] = deque(maxlen=TAIL)
        self._loop = loop
        self._descriptor = descriptor
        self._log = log
        self._line = b""
        os.set_blocking(descriptor, False)
        loop.add_reader(descriptor, self._readable)

    def close(self) -> None:
        """Log the remaining output and close the pipe."""
        for _ in range(_MAX_CHUNKS):  # a process that outlives the worker may keep writing
            if self._descriptor < 0 or not self._readable():
                break
        self._end()

    def _readable(self) -> bool:
        """Read once; return False if there is no data."""
        try:
            data = os.read(self._descriptor, _CHUNK)
        except (BlockingIOError, InterruptedError):
            return False
        except OSError:
            data = b""
        if not data:
            self._end()
            return False
        *lines, self._line = (self._line + data).split(b"\n")
        for line in lines:
            self._log_line(line)
        if len(self._line) > _MAX_LINE:
            self._log_line(self._line)
            self._line = b""
        return True

    def _log_line(self, line: bytes) -> None:
        text = line.decode(errors="backslashreplace").rstrip()
        if text:
            self.tail.append(text)
            self._log.info("%s", text)

    def _end(self) -> None:
        if self._descriptor >= 0:
            self._loop.remove_reader(self._descriptor)
            os.close(self._descriptor)
            self._descriptor = -1
            self._log_line(self._line)
            self._line = b""
