"""Asks a model whether it is ready, and does not wait for ever."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from concurrent.futures import Future, wait

from tritonpy.runners.runner import READINESS_LIMIT_S


class ReadinessCheck:
    """One question at a time, on a thread of its own; who asks while it is open gets the same answer.

    So a model whose check hangs holds one thread, however many probes come.
    """

    def __init__(
        self,
        ask: Callable[[], bool],
        log: logging.LoggerAdapter[logging.Logger],
        limit_s: float = READINESS_LIMIT_S,
    ) -> None:
        self._ask = ask
        self._log = log
        self._limit_s = limit_s
        self._lock = threading.Lock()
        self._open: Future[bool] | None = None

    def answer(self) -> bool:
        """Return what the model says; False when it raises, or says nothing for `limit_s`."""
        question = self._question()
        wait((question,), self._limit_s)
        if not question.done():
            self._log.warning("no answer to is_ready() in %g s", self._limit_s)
            return False
        error = question.exception()
        if error is not None:
            self._log.warning("is_ready() failed: %s", error)
            return False
        return question.result()

    def _question(self) -> Future[bool]:
        with self._lock:
            if self._open is None or self._open.done():
                self._open = Future()
                threading.Thread(target=self._run, args=(self._open,), name="is_ready", daemon=True).start()
            return self._open

    def _run(self, question: Future[bool]) -> None:
        try:
            question.set_result(bool(self._ask()))
        except BaseException as error:
            question.set_exception(error)
