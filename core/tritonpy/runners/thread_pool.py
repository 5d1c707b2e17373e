"""A pool of threads shared by many models; an idle model occupies none."""

from __future__ import annotations

import logging
import threading
from collections import deque
from collections.abc import Callable
from contextlib import suppress

log = logging.getLogger("tritonpy.instance")

IDLE_S = 10.0  # how long an idle thread is kept
KEPT = 2  # idle threads that are kept for good
Function = Callable[[], None]


class ThreadPool:
    """Runs functions on up to `max_threads` threads; further functions wait in order.

    The most recently used thread is used first. Waking it costs as much as waking a thread that
    waits on a lock. Exceptions are logged.
    """

    def __init__(self, name: str, max_threads: int) -> None:
        self._name = name
        self._max_threads = max_threads
        self._idle: list[_Thread] = []  # the last one is used first
        self._waiting: deque[Function] = deque()
        self._guard = threading.Lock()
        self._threads: set[_Thread] = set()
        self._started = 0
        self._closed = False

    @property
    def saturated(self) -> bool:
        """Whether functions wait for a thread."""
        return bool(self._waiting)

    def prepare(self) -> None:
        """Start the first threads, so that `run` need not."""
        for _ in range(len(self._threads), min(KEPT, self._max_threads)):
            self._start(None)

    def run(self, function: Function) -> None:
        """Call `function` on a thread of the pool; never blocks."""
        try:
            thread = self._idle.pop()
        except IndexError:
            self._start(function)
        else:
            thread.work = function
            thread.wakeup.release()

    def close(self) -> None:
        """End the threads after all current and waiting functions, and wait for that."""
        with self._guard:
            self._closed = True
            threads = tuple(self._threads)
        with suppress(IndexError):
            while True:
                self._idle.pop().wakeup.release()
        for thread in threads:
            if thread.is_alive() and thread is not threading.current_thread():
                thread.join()

    def _start(self, function: Function | None) -> None:
        """Start a thread for `function` or for later work; at the limit, `function` waits."""
        with self._guard:
            if not self._closed and len(self._threads) >= self._max_threads:
                self._queue(function)
                return
            self._started += 1
            thread = _Thread(self, function, f"{self._name} {self._started}")
            self._threads.add(thread)
        try:
            thread.start()
        except RuntimeError:  # the system allows no more threads
            with self._guard:
                self._threads.discard(thread)
                if function is not None and not self._threads:
                    raise
                self._queue(function)

    def _queue(self, function: Function | None) -> None:
        if function is None:
            return
        self._waiting.append(function)
        with suppress(IndexError):  # a thread may have become idle in the meantime
            thread = self._idle.pop()
            thread.work = self._waiting.popleft()
            thread.wakeup.release()

    def _serve(self, thread: _Thread) -> None:
        while True:
            function, thread.work = thread.work, None
            if function is not None:
                if not self._idle and not self._closed:
                    self._start(None)  # done here to keep `run` fast
                try:
                    function()
                except BaseException:
                    log.exception("thread %s failed", thread.name)
                function = None  # free the objects it refers to
            if self._waiting:
                with self._guard:
                    thread.work = self._waiting.popleft() if self._waiting else None
            if (
                thread.work is None
                and (self._closed or self._is_idle_too_long(thread))
                and self._try_end(thread)
            ):
                return

    def _is_idle_too_long(self, thread: _Thread) -> bool:
        """Wait for work; return True if the thread should end because none came for too long."""
        self._idle.append(thread)
        if (self._waiting or self._closed) and self._remove_idle(thread):
            return self._closed  # work that came before other threads could see this one as idle
        while not thread.wakeup.acquire(timeout=IDLE_S):
            if len(self._threads) > KEPT and self._remove_idle(thread):
                return True
        return self._closed and thread.work is None

    def _remove_idle(self, thread: _Thread) -> bool:
        """Remove `thread` from the idle threads; return False if it is in use."""
        try:
            self._idle.remove(thread)
        except ValueError:
            return False
        return True

    def _try_end(self, thread: _Thread) -> bool:
        with self._guard:
            if self._waiting:
                return False
            self._threads.discard(thread)
            return True


class _Thread(threading.Thread):
    def __init__(self, pool: ThreadPool, work: Function | None, name: str) -> None:
        super().__init__(name=name, daemon=True)
        self.work: Function | None = work
        self.wakeup = threading.Lock()
        self.wakeup.acquire()
        self._pool = pool

    def run(self) -> None:
        self._pool._serve(self)
