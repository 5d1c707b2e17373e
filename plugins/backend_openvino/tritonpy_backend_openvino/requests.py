"""The infer requests of one instance: several may be on the device at once, so that it never waits for the next batch."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from queue import SimpleQueue
from threading import Thread
from typing import Any

Fill = Callable[[Any], None]
Finish = Callable[[Exception | None], None]


class InferRequests:
    """Runs infer requests and sees to it that each is finished, in whichever order they end.

    `run` and `close` are called from one thread. OpenVINO calls nobody back for a request that fails, so a thread waits for each that runs.
    A single request is waited for by the caller: a second thread would only cost it time.
    """

    def __init__(self, requests: Sequence[Any], name: str) -> None:
        """Take `requests`, each an `openvino.InferRequest` that nobody else uses; the threads are called `name`."""
        self._next, *others = requests
        self._free: SimpleQueue[Any] = SimpleQueue()
        for request in others:
            self._free.put(request)
        self._started: SimpleQueue[tuple[Any, Finish] | None] = SimpleQueue()
        self._threads = [
            Thread(target=self._wait_for_started, name=f"{name} request {number}", daemon=True)
            for number in range(len(requests) if others else 0)
        ]
        for thread in self._threads:
            thread.start()

    def run(self, fill: Fill, finish: Finish) -> None:
        """Let `fill` set the tensors of a free request and start it; return when another one is free, which may be at once.

        `finish` is called once, from any thread, with what the request raised. What `fill` or the start raises is raised here, and
        `finish` is not called.
        """
        request = self._next
        fill(request)
        request.start_async()  # never `infer`: with a single thread that says nothing of what went wrong
        if not self._threads:
            finish(_error_of(request))
            return
        self._started.put((request, finish))
        self._next = self._free.get()

    def close(self) -> None:
        """Return when nothing runs any more and the threads are gone; a second time does nothing."""
        threads, self._threads = self._threads, []
        for _ in threads:
            self._started.put(None)
        for thread in threads:
            thread.join()

    def _wait_for_started(self) -> None:
        while (started := self._started.get()) is not None:
            request, finish = started
            error = _error_of(request)
            self._free.put(request)  # before the answer is made: the device has something to do meanwhile
            finish(error)
            del started, finish  # they hold the memory of the batch


def _error_of(request: Any) -> Exception | None:
    """Wait until `request` is over; return what it raised."""
    try:
        request.wait()
    except Exception as error:
        return error
    return None
