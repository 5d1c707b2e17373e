"""Whether waiting for further rows pays, by the rates that were seen with it and without it."""

from __future__ import annotations

from enum import Enum, auto
from math import log

_SETTLING = 3  # batches after a change that do not count
_COUNTED = 12  # batches of a period that count
_MEMORY = 0.7
_MARGIN = 0.02  # of the rate: the least that waiting must gain
_MOST = 0.3  # of the logarithm of a rate: one disturbed period does not decide alone
_SHORTEST, _LONGEST = 2, 16  # periods between two trials


class _Stage(Enum):
    STEADY, TRIAL, AFTER = auto(), auto(), auto()


class Trials:
    """Tries the other way for a period now and then, and keeps what gave more rows per second.

    What a batch costs is only known for sizes that ran. A policy that always waits sees one size, takes half of its cost
    for fixed, and waits on. A trial shows the truth, and its other sizes teach the costs. The rate of a trial is compared
    with those of the periods before and after it, so that a drift of the load or of the machine cancels out.
    """

    def __init__(self) -> None:
        self.waits = True
        self._preferred = True
        self._advantage: float | None = None  # of waiting, as a logarithm of rates
        self._stage = _Stage.STEADY
        self._pause = _SHORTEST
        self._periods = 0
        self._before = self._tried = 0.0
        self._batches = self._rows = self._begin_ns = 0

    def learn(self, rows: int, now_ns: int) -> None:
        """Record a batch that leaves."""
        self._batches += 1
        if self._batches == _SETTLING:
            self._begin_ns, self._rows = now_ns, 0
        elif self._batches == _SETTLING + _COUNTED:
            self._batches = 0
            self._end_period(log(max(self._rows, 1) / max(now_ns - self._begin_ns, 1)))
        self._rows += rows

    def _end_period(self, rate: float) -> None:
        if self._stage is _Stage.STEADY:
            self._before = rate
            self._periods += 1
            if self._periods >= self._pause:
                self._stage, self.waits = _Stage.TRIAL, not self._preferred
        elif self._stage is _Stage.TRIAL:
            self._tried = rate
            self._stage, self.waits = _Stage.AFTER, self._preferred
        else:
            self._decide(self._tried - (self._before + rate) / 2)

    def _decide(self, gain: float) -> None:
        """Prefer what the trials so far speak for; the last one's rate was higher by `gain`."""
        seen = min(max(-gain if self._preferred else gain, -_MOST), _MOST)
        known = self._advantage
        self._advantage = seen if known is None else _MEMORY * known + (1 - _MEMORY) * seen
        better = self._advantage > _MARGIN
        self._pause = min(2 * self._pause, _LONGEST) if better is self._preferred else _SHORTEST
        self.waits = self._preferred = better
        self._stage, self._periods = _Stage.STEADY, 0
