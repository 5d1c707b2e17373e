"""A pipe that ends worker processes together with the server."""

from __future__ import annotations

import os
import threading

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
