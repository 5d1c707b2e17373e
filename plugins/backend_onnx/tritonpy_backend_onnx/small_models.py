"""Limit on the threads that ONNX Runtime keeps for small models.

Each session keeps one thread per core for work inside an operator. Thousands of models would keep
thousands of threads, and operators of small models rarely benefit from parallelism.
"""

from __future__ import annotations

import logging
import os
import threading
import weakref
from typing import Any

log = logging.getLogger("tritonpy.backend")

SMALL_MODEL_BYTES = 1 << 20
MIN_THREADS, MIN_SESSIONS = 256, 16


class SmallModelThreads:
    """Counts the threads of the sessions of small models.

    `cores` is the number of cores of this process. ONNX Runtime creates one thread fewer, because
    the calling thread computes, too.
    """

    def __init__(self, cores: int | None = None) -> None:
        self._threads_per_session = (cores or len(os.sched_getaffinity(0))) - 1
        self._lock = threading.Lock()
        self._threads = 0
        self._is_limit_logged = False

    def reserve(self, most: int | None) -> bool:
        """Reserve the threads of one more session; return False if the limit is reached.

        `most` is the limit for all small models, or None for the default. `release`, or the end of
        a session passed to `bind`, frees the reservation.
        """
        limit = max(MIN_THREADS, MIN_SESSIONS * self._threads_per_session) if most is None else most
        with self._lock:
            if self._threads + self._threads_per_session <= limit:
                self._threads += self._threads_per_session
                return True
            is_logged, self._is_limit_logged = self._is_limit_logged, True
        if not is_logged:
            log.info(
                "ONNX Runtime keeps %d threads for models of less than %d MiB: "
                "further ones compute on the executing thread,"
                " unless they set the parameter intra_op_thread_count",
                self._threads, SMALL_MODEL_BYTES >> 20,
            )  # fmt: skip
        return False

    def bind(self, session: Any) -> None:
        """Release the reservation when `session` is garbage-collected."""
        weakref.finalize(session, self.release).atexit = False

    def release(self) -> None:
        """Release the reservation of one session."""
        with self._lock:
            self._threads -= self._threads_per_session


small_model_threads = SmallModelThreads()
