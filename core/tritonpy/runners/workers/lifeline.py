"""What workers hold on to, so that they end with the server whatever they are doing."""

from __future__ import annotations

import os
import threading

_lock = threading.Lock()
_pipe: tuple[int, int] | None = None


def lifeline() -> int:
    """Return a descriptor for one worker: the reading end of a pipe that is closed by nothing but the end of this process."""
    global _pipe
    with _lock:
        if _pipe is None:
            _pipe = os.pipe()
    return os.dup(_pipe[0])
