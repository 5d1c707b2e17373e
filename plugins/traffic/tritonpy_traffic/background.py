"""A thread for what no client waits for."""

from __future__ import annotations

import logging
import threading
import time
from collections import deque
from collections.abc import Callable

log = logging.getLogger("tritonpy.traffic")

PAUSE_S = 0.002
"""Least pause between two rounds: what came meanwhile is done together, so that the thread does not wake once per request."""
REST = 19
"""A round is followed by a pause of so many times its CPU time: the interpreter is for the requests of clients, the thread gets a twentieth of it."""


class BackgroundThread:
    """Does tasks in their order, soon, in a thread that starts with the first. They may block."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._tasks: deque[Callable[[], None]] = deque()
        self._wake = threading.Event()
        self._lock = threading.Lock()
        self._asleep = False
        self._closed = threading.Event()
        self._thread: threading.Thread | None = None

    def add(self, task: Callable[[], None]) -> None:
        """Let `task` be done; costs little, and a wake-up only where the thread sleeps."""
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
                self._do(self._tasks.popleft())
            worked = time.thread_time() - began
            self._wake.clear()
            self._asleep = True
            if not self._tasks:  # who adds from here on sees that it sleeps
                if self._closed.is_set():
                    return
                self._wake.wait()
            self._asleep = False
            self._closed.wait(max(PAUSE_S, REST * worked))

    @staticmethod
    def _do(task: Callable[[], None]) -> None:
        try:
            task()
        except Exception:
            log.exception("a task in the background failed")

    def close(self) -> None:
        """Do what there is to do, then end the thread."""
        with self._lock:
            self._closed.set()
        self._wake.set()
        if self._thread is not None:
            self._thread.join()
