"""Where answers go."""

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
    """Takes answers, from any thread. `put` never blocks and never raises.

    No lock is held while it is called, so that it may answer another request or hand one to the engine: an ensemble's next step.
    One that `passes_on` what it takes to another process need not be given tensors that nobody has looked at.
    """

    passes_on: ClassVar[bool] = False

    @abstractmethod
    def put(self, request: InferRequest, response: InferResponse) -> None:
        """Take one answer; the answers of one request arrive in order, the final one last."""

    def ready(self, request: InferRequest) -> bool:
        """Return False while the buffer of this request's stream is full: a decoupled backend should answer when it is True again."""
        return True

    def when_ready(self, request: InferRequest, callback: Callable[[], None]) -> None:
        """Call `callback` once, from any thread: now if `ready`, else when there is room again, nobody listens any more or the request is cancelled.

        It must not block and not raise.
        """
        callback()

    def cancelled(self, request: InferRequest) -> None:
        """Hear that the request was told to stop: calls back whoever waits for room for it."""


class CallbackSink(Sink):
    """Calls a function in the thread that answers: for tests, ensembles and in-process callers."""

    def __init__(self, deliver: Callable[[InferRequest, InferResponse], None]) -> None:
        self._deliver = deliver

    def put(self, request: InferRequest, response: InferResponse) -> None:
        self._deliver(request, response)


class TurnSink(Sink):
    """Delivers what came by a turn of an event loop all at once, waking it at most once however many answers wait.

    A batch that is answered at once costs one wake-up: a further one is asked for only when none is pending.
    """

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._waiting: deque[tuple[InferRequest, InferResponse]] = deque()
        self._woken = False

    @abstractmethod
    def deliver_waiting(self, waiting: deque[tuple[InferRequest, InferResponse]]) -> None:
        """Take what waits out of the queue, oldest first, and deliver it, on the loop's thread; what an exception leaves there comes in another turn."""

    def put(self, request: InferRequest, response: InferResponse) -> None:
        self._waiting.append((request, response))
        if not self._woken:
            self._wake()

    def _wake(self) -> None:
        self._woken = True
        try:
            # From the loop itself (a worker's answer) no system call is needed to wake it.
            if asyncio._get_running_loop() is self._loop:
                self._loop.call_soon(self._drain)
            else:
                self._loop.call_soon_threadsafe(self._drain)
        except RuntimeError:  # the loop is closed: nobody is left to be answered
            self._woken = False
            self._waiting.clear()

    def _drain(self) -> None:
        # Cleared before the queue is read: an answer put from now on asks for its own wake-up, none is lost.
        self._woken = False
        try:
            self.deliver_waiting(self._waiting)
        finally:
            if self._waiting and not self._woken:  # it raised: what is behind must not wait for the next answer
                self._wake()


class LoopSink(TurnSink):
    """Delivers answers on an event loop, one by one: `deliver` runs on the loop's thread."""

    def __init__(self, loop: asyncio.AbstractEventLoop, deliver: Callable[[InferRequest, InferResponse], None]) -> None:
        super().__init__(loop)
        self._deliver = deliver

    def deliver_waiting(self, waiting: deque[tuple[InferRequest, InferResponse]]) -> None:
        deliver = self._deliver
        while waiting:
            request, response = waiting.popleft()
            deliver(request, response)
