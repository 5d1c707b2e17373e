"""A background thread for tasks that no client waits for."""

from __future__ import annotations

import logging
import threading
import time
from collections import deque
from collections.abc import Callable

log = logging.getLogger("tritonpy.traffic")

MIN_PAUSE_S = 0.002
"""Minimum pause between two rounds.

It batches tasks, so the thread does not wake up per request.
"""
PAUSE_FACTOR = 19
"""Pause after a round, as a multiple of its CPU time.

It leaves the interpreter to client requests: the thread uses at most a twentieth of a core.
"""


class BackgroundThread:
    """Runs tasks in order in a thread that starts with the first task. Tasks may block."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._tasks: deque[Callable[[], None]] = deque()
        self._wake = threading.Event()
        self._lock = threading.Lock()
        self._asleep = False
        self._closed = threading.Event()
        self._thread: threading.Thread | None = None

    def add(self, task: Callable[[], None]) -> None:
        """Queue `task`. This is cheap, because a thread that is awake needs no wake-up."""
        self._tasks.append(task)
        if self._asleep:
            self._wake.set()
        elif self._thread is None:
            self._start()

    def _start(self) -> None:
        with self._lock:
            if self._thread is None and not self._closed.is_set():
                self._thread = threading.Thread(target=self._run, name=self._name, daemon=True)
                self._thread.start()

    def _run(self) -> None:
        while True:
            began = time.thread_time()
            for _ in range(len(self._tasks)):
                self._run_task(self._tasks.popleft())
            worked = time.thread_time() - began
            self._wake.clear()
            self._asleep = True
            if not self._tasks:  # `add` sets the event for tasks that come later
                if self._closed.is_set():
                    return
                self._wake.wait()
            self._asleep = False
            self._closed.wait(max(MIN_PAUSE_S, PAUSE_FACTOR * worked))

    @staticmethod
    def _run_task(task: Callable[[], None]) -> None:
        try:
            task()
        except Exception:
            log.exception("a background task failed")

    def close(self) -> None:
        """Run the queued tasks, then end the thread."""
        with self._lock:
            self._closed.set()
        self._wake.set()
        if self._thread is not None:
            self._thread.join()
