"""Open loop: requests start when they are due, independent of responses."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Sequence

from tritonpy_load_generator.loops.exchange import RequestSender
from tritonpy_load_generator.loops.jobs import JobSource
from tritonpy_load_generator.loops.loop import Loop, RequestBudget
from tritonpy_load_generator.loops.request_recorder import RequestRecorder


class OpenLoop(Loop):
    """Sends at the times of `arrivals` (ns after `begin_ns`).

    A request that is due while every sender is busy waits in order. Its latency counts from when it
    was due. So a stall of the server affects all requests that had to wait, not only those in
    flight (no coordinated omission). `wake_at(ns, call)` is a timer with one deadline.
    """

    def __init__(
        self,
        senders: Sequence[RequestSender],
        jobs: JobSource,
        recorder: RequestRecorder,
        budget: RequestBudget,
        clock: Callable[[], int],
        call_later: Callable[[float, Callable[[], None]], object],
        *,
        arrivals: Iterator[int],
        begin_ns: int,
        wake_at: Callable[[int, Callable[[], None]], None],
    ) -> None:
        super().__init__(senders, jobs, recorder, budget, clock, call_later)
        self._arrivals = arrivals
        self._begin_ns = begin_ns
        self._wake_at = wake_at
        self._next = 0
        self._waiting: deque[tuple[int, int]] = deque()  # intended, noticed
        self._idle = list(reversed(senders))
        recorder.watch_unsent(self._unsent)

    def start(self) -> None:
        """Set the timer for the first arrival."""
        self._next = self._begin_ns + next(self._arrivals)
        self.wake()

    def wake(self) -> None:
        """Start all due requests and set the timer for the next one."""
        now = self._clock()
        while self._next <= now and self._open:
            self._arrived(self._next, now)
            self._next = self._begin_ns + next(self._arrivals)
        if self._open:
            self._wake_at(self._next, self.wake)

    @property
    def finished(self) -> bool:
        """Whether all requests of the budget have finished."""
        return super().finished and not self._waiting

    def _end_idle_sequences(self) -> None:
        """Drop due, unsent requests and end the open sequences of idle senders."""
        self._waiting.clear()
        for sender in self._idle:
            self._end_sequence(sender)
        self._idle.clear()

    @property
    def _open(self) -> bool:
        """Whether further requests may become due; waiting ones are part of the budget."""
        return not self._stopping and not self._budget.is_exhausted_after(len(self._waiting))

    def _arrived(self, intended: int, noticed: int) -> None:
        if self._idle:
            self._send(self._idle.pop(), intended, noticed)
        else:
            self._waiting.append((intended, noticed))

    def _send_next(self, sender: RequestSender) -> None:
        if self._stopping:
            self._end_sequence(sender)
        elif self._waiting:
            self._send(sender, *self._waiting.popleft())
        else:
            self._idle.append(sender)

    def _unsent(self) -> tuple[int, int | None]:
        return len(self._waiting), (self._waiting[0][0] if self._waiting else None)
