"""Processes that the server starts: their end, their restarts, and signals that they ignore."""

from __future__ import annotations

import os
import signal
import threading
from types import FrameType

_FIRST_S = 0.25
_MAX_DELAY_S = (
    1.0  # after a worker that had started: one request may have ended it, and others wait
)
_MAX_START_DELAY_S = 30.0  # while starts fail: requests are refused meanwhile
SETTLED_S = 60.0  # a worker that lived this long was healthy: the next restart is immediate


class Backoff:
    """Restart delays, which increase while workers die early or fail to start."""

    def __init__(self) -> None:
        self._next_s = 0.0
        self._failures = 0

    def after_death_s(self, lived_s: float) -> float:
        """Return the delay in seconds after the death of a worker that lived for `lived_s`."""
        self._failures = 0
        if lived_s >= SETTLED_S:
            self._next_s = 0.0
        delay, self._next_s = self._next_s, min(max(_FIRST_S, 2 * self._next_s), _MAX_DELAY_S)
        return delay

    def after_failed_start_s(self) -> float:
        """Return the delay in seconds after a failed start."""
        self._failures += 1
        return float(min(_FIRST_S * 2 ** min(self._failures - 1, 20), _MAX_START_DELAY_S))


_lock = threading.Lock()
_pipe: tuple[int, int] | None = None


def open_parent_pipe() -> int:
    """Return a descriptor of the pipe's reading end for one worker.

    The writing end is closed only when this process ends.
    """
    global _pipe
    with _lock:
        if _pipe is None:
            _pipe = os.pipe()
    return os.dup(_pipe[0])


def describe_exit(status: int | None) -> str:
    """Return why a worker ended, from a status as in `subprocess`; None: unknown."""
    if status is None:
        return "it exited with an unknown status"
    if status >= 0:
        return f"it exited with status {status}"
    try:
        name = signal.Signals(-status).name
    except ValueError:
        return f"it was killed by signal {-status}"
    if -status == signal.SIGKILL:
        return "it was killed by signal 9 (SIGKILL), possibly because the system was out of memory"
    return f"it was killed by signal {-status} ({name})"


def ignore_shutdown_signals() -> None:
    """Ignore signals that a terminal or service manager sends to all processes of the server.

    The server decides when workers end. A handler is used because, unlike SIG_IGN, started programs
    do not inherit it. Forked processes have another process id and die as usual.
    """
    worker = os.getpid()

    def ignore(number: int, _frame: FrameType | None) -> None:
        if os.getpid() != worker:
            signal.signal(number, signal.SIG_DFL)
            os.kill(os.getpid(), number)

    signal.signal(signal.SIGINT, ignore)
    signal.signal(signal.SIGTERM, ignore)
