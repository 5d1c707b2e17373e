"""What an exit status says to people."""

from __future__ import annotations

import signal


def describe(status: int | None) -> str:
    """Return why a worker ended, from its status as subprocess gives it; None: nobody knows."""
    if status is None:
        return "it ended, with a status that is not known"
    if status >= 0:
        return f"it exited with status {status}"
    try:
        name = signal.Signals(-status).name
    except ValueError:
        return f"it was killed by signal {-status}"
    if -status == signal.SIGKILL:
        return "it was killed by signal 9 (SIGKILL): by somebody, or by the system for want of memory"
    return f"it was killed by signal {-status} ({name})"
