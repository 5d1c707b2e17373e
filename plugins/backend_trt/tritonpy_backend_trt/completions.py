"""Waits for executions and answers them, so that the instance's thread need not."""

from __future__ import annotations

import threading
from collections.abc import Callable
from queue import SimpleQueue

from tritonpy_backend_trt.flight import Flight


class Completions:
    """A thread that calls `finish` for each flight in the order in which they were put; `begin` is called there first."""

    def __init__(self, name: str, begin: Callable[[], None], finish: Callable[[Flight], None]) -> None:
        self._flights: SimpleQueue[Flight | None] = SimpleQueue()
        self._begin = begin
        self._finish = finish
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)
        self._thread.start()

    def put(self, flight: Flight) -> None:
        """Have `flight` finished."""
        self._flights.put(flight)

    def close(self) -> None:
        """Return when everything that was put is finished. A second time is fine."""
        self._flights.put(None)
        self._thread.join()

    def _run(self) -> None:
        self._begin()
        while (flight := self._flights.get()) is not None:
            self._finish(flight)
