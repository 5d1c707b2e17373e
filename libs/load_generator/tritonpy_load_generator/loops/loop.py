"""Base of closed and open loops: request budget, pause after lost connections, and shutdown."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence

from tritonpy_load_generator.loops.exchange import Exchange, LostConnection, RequestSender
from tritonpy_load_generator.loops.jobs import JobSource
from tritonpy_load_generator.loops.request_recorder import RequestRecorder

PAUSE_S = 0.1
"""Pause of a slot after its connection was lost, in seconds, to spare a restarting server."""


class RequestBudget:
    """The number of requests to send: `warmup` uncounted ones, then `limit` (None: unlimited)."""

    def __init__(self, warmup: int = 0, limit: int | None = None) -> None:
        self._warmup = warmup
        self._left = None if limit is None else warmup + limit
        self._started = self._ended = 0

    @property
    def exhausted(self) -> bool:
        """Whether no further request may start."""
        return self.is_exhausted_after(0)

    def is_exhausted_after(self, more: int) -> bool:
        """Return whether no further request may start after `more` additional ones."""
        return self._left is not None and self._started + more >= self._left

    @property
    def warming(self) -> bool:
        """Whether requests of the warm-up have not finished."""
        return self._ended < self._warmup

    def begin(self) -> bool:
        """Use one request of the budget and return whether it is counted."""
        self._started += 1
        return self._started > self._warmup

    def end(self, counted: bool) -> None:
        """Record the end of a request."""
        self._ended += not counted


class Loop(ABC):
    """Sends requests on its senders, one in flight on each.

    `clock` returns ns, and `call_later(seconds, callback)` is the event loop's timer. Subclasses
    decide when an idle sender sends again.
    """

    def __init__(
        self,
        senders: Sequence[RequestSender],
        jobs: JobSource,
        recorder: RequestRecorder,
        budget: RequestBudget,
        clock: Callable[[], int],
        call_later: Callable[[float, Callable[[], None]], object],
    ) -> None:
        self._senders = senders
        self._jobs = jobs
        self._recorder = recorder
        self._budget = budget
        self._clock = clock
        self._call_later = call_later
        self._stopping = False
        self._on_idle: Callable[[], None] | None = None
        for sender in senders:
            sender.on_end = self._ended

    @abstractmethod
    def start(self) -> None:
        """Start sending."""

    @abstractmethod
    def _send_next(self, sender: RequestSender) -> None:
        """Send the next request on a sender without a request in flight, or leave it idle."""

    @property
    def warming(self) -> bool:
        """Whether requests of the warm-up are in flight."""
        return self._budget.warming

    @property
    def finished(self) -> bool:
        """Whether all requests of the budget have finished."""
        return self._budget.exhausted and not self._recorder.in_flight

    def stop(self, on_idle: Callable[[], None]) -> None:
        """Send the last request of each open sequence; call `on_idle` when none is in flight."""
        self._stopping = True
        self._on_idle = on_idle
        self._end_idle_sequences()
        self._notify_idle()

    def _end_idle_sequences(self) -> None:
        """End the open sequences of idle senders; busy senders end theirs after their request."""

    def _send(
        self, sender: RequestSender, intended: int | None = None, noticed: int | None = None
    ) -> None:
        """Send the slot's next request, due at `intended`, noticed at `noticed` (default: now)."""
        counted = self._budget.begin()
        job = self._jobs.next_job(sender.number)
        now = self._clock()
        exchange = Exchange(
            job,
            now if intended is None else intended,
            now if noticed is None else noticed,
            now,
            counted,
        )
        self._recorder.request_started(exchange)
        sender.send(exchange)

    def _end_sequence(self, sender: RequestSender) -> None:
        """End the open sequence of the sender's slot."""
        job = self._jobs.closing_job(sender.number)
        if job is not None:
            now = self._clock()
            exchange = Exchange(job, now, now, now, counted=False)
            self._recorder.request_started(exchange)
            sender.send(exchange)

    def _ended(self, sender: RequestSender, exchange: Exchange, error: str | None) -> None:
        self._recorder.request_ended(exchange, error)
        if not self._stopping:
            self._budget.end(exchange.counted)
        if isinstance(error, LostConnection):
            self._call_later(PAUSE_S, lambda: self._send_next(sender))
        else:
            self._send_next(sender)
        self._notify_idle()

    def _notify_idle(self) -> None:
        if self._on_idle is not None and not self._recorder.in_flight:
            self._on_idle()
