"""Threads that many models share: an idle model keeps none of them."""

from __future__ import annotations

import logging
import threading
from collections import deque
from collections.abc import Callable
from contextlib import suppress

log = logging.getLogger("tritonpy.instance")

IDLE_S = 10.0  # how long a thread without work stays
KEPT = 2  # threads that stay however long they have no work
Function = Callable[[], None]


class ThreadPool:
    """Runs functions, each on a thread of its own as long as there are fewer than `most` at once; further ones wait for a thread, in order.

    The thread that worked last is used first, and waking it costs as much as waking a thread that waits at a lock. An exception is logged.
    """

    def __init__(self, name: str, most: int) -> None:
        self._name = name
        self._most = most
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
        for _ in range(len(self._threads), min(KEPT, self._most)):
            self._start(None)

    def run(self, function: Function) -> None:
        """Call `function` on a thread of the pool; never waits for it."""
        try:
            thread = self._idle.pop()
        except IndexError:
            self._start(function)
        else:
            thread.work = function
            thread.bell.release()

    def close(self) -> None:
        """End the threads, each after what it is doing and what waits; returns when they are gone."""
        with self._guard:
            self._closed = True
            threads = tuple(self._threads)
        with suppress(IndexError):
            while True:
                self._idle.pop().bell.release()
        for thread in threads:
            if thread.is_alive() and thread is not threading.current_thread():
                thread.join()

    def _start(self, function: Function | None) -> None:
        """Start a thread, for `function` or to wait for work; where that is one too many, `function` waits."""
        with self._guard:
            if not self._closed and len(self._threads) >= self._most:
                self._queue(function)
                return
            self._started += 1
            thread = _Thread(self, function, f"{self._name} {self._started}")
            self._threads.add(thread)
        try:
            thread.start()
        except RuntimeError:  # the system has no more threads
            with self._guard:
                self._threads.discard(thread)
                if function is not None and not self._threads:
                    raise
                self._queue(function)

    def _queue(self, function: Function | None) -> None:
        if function is None:
            return
        self._waiting.append(function)
        with suppress(IndexError):  # a thread may have become idle since the caller looked
            thread = self._idle.pop()
            thread.work = self._waiting.popleft()
            thread.bell.release()

    def _serve(self, thread: _Thread) -> None:
        while True:
            function, thread.work = thread.work, None
            if function is not None:
                if not self._idle and not self._closed:
                    self._start(None)  # here, so that `run` finds one: its callers are in a hurry
                try:
                    function()
                except BaseException:
                    log.exception("thread %s failed", thread.name)
                function = None  # what it refers to goes with it
            if self._waiting:
                with self._guard:
                    thread.work = self._waiting.popleft() if self._waiting else None
            if thread.work is None and (self._closed or self._rests_too_long(thread)) and self._ended(thread):
                return

    def _rests_too_long(self, thread: _Thread) -> bool:
        """Wait until there is work for `thread`; True where none came for so long that it should end."""
        self._idle.append(thread)
        if (self._waiting or self._closed) and self._withdrawn(thread):
            return (
                self._closed
            )  # that came between the last look and the moment from which others could see the thread here
        while not thread.bell.acquire(timeout=IDLE_S):
            if len(self._threads) > KEPT and self._withdrawn(thread):
                return True
        return self._closed and thread.work is None

    def _withdrawn(self, thread: _Thread) -> bool:
        """Take `thread` out of use; False if it is in use."""
        try:
            self._idle.remove(thread)
        except ValueError:
            return False
        return True

    def _ended(self, thread: _Thread) -> bool:
        with self._guard:
            if self._waiting:
                return False
            self._threads.discard(thread)
            return True


class _Thread(threading.Thread):
    def __init__(self, pool: ThreadPool, work: Function | None, name: str) -> None:
        super().__init__(name=name, daemon=True)
        self.work: Function | None = work
        self.bell = threading.Lock()
        self.bell.acquire()
        self._pool = pool

    def run(self) -> None:
        self._pool._serve(self)
