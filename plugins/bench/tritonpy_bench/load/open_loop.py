"""Open loop: requests start when they are due, however slow the answers are."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Sequence

from tritonpy_bench.load.exchange import Carrier
from tritonpy_bench.load.jobs import Jobs
from tritonpy_bench.load.ledger import Ledger
from tritonpy_bench.load.loop import Budget, Loop


class OpenLoop(Loop):
    """Sends at the times of `arrivals` (ns after the start), counted from `begin_ns`.

    A request that is due while every carrier is busy waits its turn, and its latency counts from when it was due: a server that stalls
    is charged for every request that it kept waiting, not only for those that happened to be in flight (coordinated omission).
    `wake_at(ns, call)` is a timer that has one time.
    """

    def __init__(
        self,
        carriers: Sequence[Carrier],
        jobs: Jobs,
        ledger: Ledger,
        budget: Budget,
        clock: Callable[[], int],
        later: Callable[[float, Callable[[], None]], object],
        *,
        arrivals: Iterator[int],
        begin_ns: int,
        wake_at: Callable[[int, Callable[[], None]], None],
    ) -> None:
        super().__init__(carriers, jobs, ledger, budget, clock, later)
        self._arrivals = arrivals
        self._begin_ns = begin_ns
        self._wake_at = wake_at
        self._next = 0
        self._waiting: deque[tuple[int, int]] = deque()  # intended, noticed
        self._idle = list(reversed(carriers))
        ledger.watch_unsent(self._unsent)

    def start(self) -> None:
        """Wait for the first arrival."""
        self._next = self._begin_ns + next(self._arrivals)
        self.wake()

    def wake(self) -> None:
        """Begin everything that is due, and ask to be woken for the next."""
        now = self._clock()
        while self._next <= now and self._open:
            self._arrived(self._next, now)
            self._next = self._begin_ns + next(self._arrivals)
        if self._open:
            self._wake_at(self._next, self.wake)

    @property
    def finished(self) -> bool:
        """All requests of the budget were made and have ended."""
        return super().finished and not self._waiting

    def _end_open(self) -> None:
        """Let go of what was due and not sent, and end the open sequences."""
        self._waiting.clear()
        for carrier in self._idle:
            self._close(carrier)
        self._idle.clear()

    @property
    def _open(self) -> bool:
        """Whether more may become due: those that wait are part of the budget."""
        return not self._stopping and not self._budget.spent_with(len(self._waiting))

    def _arrived(self, intended: int, noticed: int) -> None:
        if self._idle:
            self._send(self._idle.pop(), intended, noticed)
        else:
            self._waiting.append((intended, noticed))

    def _free(self, carrier: Carrier) -> None:
        if self._stopping:
            self._close(carrier)
        elif self._waiting:
            self._send(carrier, *self._waiting.popleft())
        else:
            self._idle.append(carrier)

    def _unsent(self) -> tuple[int, int | None]:
        return len(self._waiting), (self._waiting[0][0] if self._waiting else None)
