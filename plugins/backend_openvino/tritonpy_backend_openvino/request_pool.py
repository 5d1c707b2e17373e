"""Infer requests of one instance; several run at once, so the device does not wait for batches."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from queue import SimpleQueue
from threading import Thread
from typing import Any

Fill = Callable[[Any], None]
Finish = Callable[[Exception | None], None]


class InferRequestPool:
    """Runs infer requests and calls `finish` for each, in order of completion.

    `run` and `close` must be called from one thread. OpenVINO does not call a callback for a failed
    request, so one thread waits for each running request. With a single request the caller waits:
    another thread would only add latency.
    """

    def __init__(self, requests: Sequence[Any], name: str) -> None:
        """Take exclusive ownership of `requests` (`openvino.InferRequest`).

        Name the threads after `name`.
        """
        self._next, *others = requests
        self._free: SimpleQueue[Any] = SimpleQueue()
        for request in others:
            self._free.put(request)
        self._started: SimpleQueue[tuple[Any, Finish] | None] = SimpleQueue()
        self._threads = [
            Thread(target=self._finish_started, name=f"{name} request {number}", daemon=True)
            for number in range(len(requests) if others else 0)
        ]
        for thread in self._threads:
            thread.start()

    def run(self, fill: Fill, finish: Finish) -> None:
        """Start a free request with tensors set by `fill`; return when another request is free.

        `finish` is called once, from any thread, with the exception of the request or None.
        Exceptions of `fill` or of the start are raised here instead, and `finish` is not called.
        """
        request = self._next
        fill(request)
        # Not `infer`: with one thread it does not report the reason of a failure.
        request.start_async()
        if not self._threads:
            finish(_wait_for_error(request))
            return
        self._started.put((request, finish))
        self._next = self._free.get()

    def close(self) -> None:
        """Wait until no request runs and the threads have ended; further calls do nothing."""
        threads, self._threads = self._threads, []
        for _ in threads:
            self._started.put(None)
        for thread in threads:
            thread.join()

    def _finish_started(self) -> None:
        while (started := self._started.get()) is not None:
            request, finish = started
            error = _wait_for_error(request)
            self._free.put(
                request
            )  # before the responses are built, so the device has work meanwhile
            finish(error)
            del started, finish  # they keep the batch's memory alive


def _wait_for_error(request: Any) -> Exception | None:
    """Wait until `request` is complete; return the exception that it raised, or None."""
    try:
        request.wait()
    except Exception as error:
        return error
    return None
