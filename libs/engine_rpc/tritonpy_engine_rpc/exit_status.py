"""Descriptions of exit statuses."""

from __future__ import annotations

import signal


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
