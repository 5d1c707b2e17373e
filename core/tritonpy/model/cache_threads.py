"""Threads for calls to a response cache."""

from __future__ import annotations

import threading
from collections.abc import Callable
from queue import SimpleQueue

Task = Callable[[], None]


class CacheThreads:
    """Runs tasks, which must not raise, in the order of their arrival.

    The threads start with the first task. They are daemon threads, so a blocked network call does
    not delay the end of the process.
    """

    def __init__(self, count: int) -> None:
        self._count = count
        self._tasks: SimpleQueue[Task | None] = SimpleQueue()
        self._threads: list[threading.Thread] = []
        self._lock = threading.Lock()
        self._closed = False

    def run(self, task: Task) -> bool:
        """Run `task` on one of the threads; False if they are closed and the task does not run."""
        if len(self._threads) < self._count or self._closed:
            with self._lock:
                if self._closed:
                    return False
                while len(self._threads) < self._count:
                    name = f"response cache {len(self._threads)}"
                    self._threads.append(threading.Thread(target=self._work, name=name, daemon=True))
                    self._threads[-1].start()
        self._tasks.put(task)
        return True

    def close(self) -> None:
        """End the threads after the tasks that are already queued."""
        with self._lock:
            self._closed = True
            for _ in self._threads:
                self._tasks.put(None)

    def join(self, timeout_s: float) -> None:
        """Wait up to `timeout_s` for each thread to end."""
        for thread in self._threads:
            thread.join(timeout_s)

    def _work(self) -> None:
        while (task := self._tasks.get()) is not None:
            task()
            del task  # a waiting thread must not keep the tensors of its last task alive
