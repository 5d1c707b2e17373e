"""Readiness checks of a model, with a time limit."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from concurrent.futures import Future, wait

from tritonpy.runners.runner import READINESS_LIMIT_S


class ReadinessCheck:
    """Runs one check at a time on its own thread and shares its result among concurrent callers.

    A model whose check hangs therefore blocks only one thread, however many probes come.
    """

    def __init__(
        self,
        is_ready: Callable[[], bool],
        log: logging.LoggerAdapter[logging.Logger],
        limit_s: float = READINESS_LIMIT_S,
    ) -> None:
        self._check_readiness = is_ready
        self._log = log
        self._limit_s = limit_s
        self._lock = threading.Lock()
        self._pending: Future[bool] | None = None

    def check(self) -> bool:
        """Return the model's result, or False if it raises or takes longer than `limit_s`."""
        check = self._pending_check()
        wait((check,), self._limit_s)
        if not check.done():
            self._log.warning("is_ready() did not respond within %g s", self._limit_s)
            return False
        error = check.exception()
        if error is not None:
            self._log.warning("is_ready() failed: %s", error)
            return False
        return check.result()

    def _pending_check(self) -> Future[bool]:
        with self._lock:
            if self._pending is None or self._pending.done():
                self._pending = Future()
                threading.Thread(
                    target=self._run, args=(self._pending,), name="is_ready", daemon=True
                ).start()
            return self._pending

    def _run(self, check: Future[bool]) -> None:
        try:
            check.set_result(bool(self._check_readiness()))
        except BaseException as error:
            check.set_exception(error)
