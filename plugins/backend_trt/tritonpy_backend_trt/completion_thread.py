"""Thread that waits for executions and sends their responses."""

from __future__ import annotations

import threading
from collections.abc import Callable
from queue import SimpleQueue

from tritonpy_backend_trt.pending_execution import PendingExecution


class CompletionThread:
    """Calls `finish` for each execution in order; calls `begin` once when the thread starts."""

    def __init__(
        self, name: str, begin: Callable[[], None], finish: Callable[[PendingExecution], None]
    ) -> None:
        self._executions: SimpleQueue[PendingExecution | None] = SimpleQueue()
        self._begin = begin
        self._finish = finish
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)
        self._thread.start()

    def put(self, execution: PendingExecution) -> None:
        """Queue `execution` for `finish`."""
        self._executions.put(execution)

    def close(self) -> None:
        """Wait until all queued executions are finished; may be called repeatedly."""
        self._executions.put(None)
        self._thread.join()

    def _run(self) -> None:
        self._begin()
        while (execution := self._executions.get()) is not None:
            self._finish(execution)
