"""Sinks, which receive the responses of requests."""

from __future__ import annotations

import asyncio
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable
from typing import TYPE_CHECKING, ClassVar

if TYPE_CHECKING:
    from tritonpy.types.request import InferRequest
    from tritonpy.types.response import InferResponse


class Sink(ABC):
    """Receives responses, from any thread. `put` never blocks and never raises.

    No lock is held during the call. So it may respond to another request or call the engine, as for
    the next step of an ensemble. If `passes_on` is set, the sink sends responses to another process
    and accepts tensors whose data was not accessed.
    """

    passes_on: ClassVar[bool] = False

    @abstractmethod
    def put(self, request: InferRequest, response: InferResponse) -> None:
        """Take one response; those of one request arrive in order, the final one last."""

    def ready(self, request: InferRequest) -> bool:
        """Return False while the stream of this request is full.

        A decoupled backend should send its next response when it is True again.
        """
        return True

    def when_ready(self, request: InferRequest, callback: Callable[[], None]) -> None:
        """Call `callback` once, from any thread, when the stream is `ready`.

        It is called immediately if the stream is ready, and also when the client has left or the
        request is cancelled. It must not block or raise.
        """
        callback()

    def cancelled(self, request: InferRequest) -> None:
        """Handle that the request was cancelled: call the callbacks that wait for its stream."""


class CallbackSink(Sink):
    """Calls a function in the responding thread; for tests, ensembles and in-process callers."""

    def __init__(self, deliver: Callable[[InferRequest, InferResponse], None]) -> None:
        self._deliver = deliver

    def put(self, request: InferRequest, response: InferResponse) -> None:
        self._deliver(request, response)


class LoopQueueSink(Sink):
    """Queues responses for an event loop and delivers all of an iteration at once.

    It wakes the loop at most once for any number of queued responses. So a batch that responds at
    once costs one wake-up.
    """

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._waiting: deque[tuple[InferRequest, InferResponse]] = deque()
        self._woken = False

    @abstractmethod
    def deliver_waiting(self, waiting: deque[tuple[InferRequest, InferResponse]]) -> None:
        """Remove the queued responses, oldest first, and deliver them on the loop's thread.

        If it raises, the next event-loop iteration delivers the rest.
        """

    def put(self, request: InferRequest, response: InferResponse) -> None:
        self._waiting.append((request, response))
        if not self._woken:
            self._wake()

    def _wake(self) -> None:
        self._woken = True
        try:
            # On the loop's own thread (responses of a worker) no system call is needed to wake it.
            if asyncio._get_running_loop() is self._loop:
                self._loop.call_soon(self._drain)
            else:
                self._loop.call_soon_threadsafe(self._drain)
        except RuntimeError:  # the loop is closed, and no client is left
            self._woken = False
            self._waiting.clear()

    def _drain(self) -> None:
        # Cleared before the queue is read: a response put from now on schedules its own wake-up.
        self._woken = False
        try:
            self.deliver_waiting(self._waiting)
        finally:
            # after an exception, deliver the rest without waiting for the next response
            if self._waiting and not self._woken:
                self._wake()


class LoopSink(LoopQueueSink):
    """Delivers responses on an event loop one by one: `deliver` runs on the loop's thread."""

    def __init__(self, loop: asyncio.AbstractEventLoop, deliver: Callable[[InferRequest, InferResponse], None]) -> None:
        super().__init__(loop)
        self._deliver = deliver

    def deliver_waiting(self, waiting: deque[tuple[InferRequest, InferResponse]]) -> None:
        deliver = self._deliver
        while waiting:
            request, response = waiting.popleft()
            deliver(request, response)
