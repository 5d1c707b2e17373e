"""Worker processes that the template forked; a pidfd reports their end."""

from __future__ import annotations

import os
import select
import signal
from collections.abc import Callable
from contextlib import suppress

from tritonpy.execution import WorkerProcess


class ForkedProcess(WorkerProcess):
    """A forked worker.

    `status(pid)` asks its parent for the exit status after it has ended. Raises
    `ProcessLookupError` if the process has already been reaped.
    """

    def __init__(self, pid: int, status: Callable[[int], int | None]) -> None:
        self.pid = pid
        self._pidfd = os.pidfd_open(pid)
        self._status = status
        self._known: int | None = None

    def wait(self, timeout_s: float) -> int | None:
        if self._known is not None or self._pidfd < 0:
            return self._known
        poll = select.poll()
        poll.register(self._pidfd, select.POLLIN)
        if not poll.poll(timeout_s * 1000):
            return None
        os.close(self._pidfd)
        self._pidfd = -1
        self._known = self._status(self.pid)
        return self._known

    def kill(self) -> None:
        if self._pidfd >= 0:
            with suppress(ProcessLookupError):
                signal.pidfd_send_signal(self._pidfd, signal.SIGKILL)
                # It leads a session, so processes that it started end too.
                os.killpg(self.pid, signal.SIGKILL)

    def __del__(self) -> None:
        if self._pidfd >= 0:
            os.close(self._pidfd)
