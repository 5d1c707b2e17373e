"""Bounds the threads that ONNX Runtime keeps for small models.

Each session keeps a thread per core for the work inside one operator. For thousands of models that is thousands of threads, and small models rarely
have operators that are worth being divided.
"""

from __future__ import annotations

import logging
import os
import threading
import weakref
from typing import Any

log = logging.getLogger("tritonpy.backend")

SMALL_BYTES = 1 << 20
LEAST_THREADS, LEAST_SESSIONS = 256, 16


class SmallModelThreads:
    """Counts the threads of the sessions of small models.

    `cores` are those that this process may use: ONNX Runtime makes a thread for each of them but one, which is that of the caller.
    """

    def __init__(self, cores: int | None = None) -> None:
        self._each = (cores or len(os.sched_getaffinity(0))) - 1
        self._lock = threading.Lock()
        self._threads = 0
        self._told = False

    def take(self, most: int | None) -> bool:
        """Return whether one more session may have threads, and count them; `most` is how many all may have (None: the default).

        What was taken is given back by `release`, or by the end of a session that it was `bind` to.
        """
        limit = max(LEAST_THREADS, LEAST_SESSIONS * self._each) if most is None else most
        with self._lock:
            if self._threads + self._each <= limit:
                self._threads += self._each
                return True
            told, self._told = self._told, True
        if not told:
            log.info(
                "ONNX Runtime keeps %d threads for models of less than %d MiB: further ones compute on the thread that executes them,"
                " unless their parameter intra_op_thread_count says otherwise",
                self._threads, SMALL_BYTES >> 20,
            )  # fmt: skip
        return False

    def bind(self, session: Any) -> None:
        """Give back what was taken for `session` when that is gone."""
        weakref.finalize(session, self.release).atexit = False

    def release(self) -> None:
        """Give back what was taken for a session."""
        with self._lock:
            self._threads -= self._each


small_model_threads = SmallModelThreads()
