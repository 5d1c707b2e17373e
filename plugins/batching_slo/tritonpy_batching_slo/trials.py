"""Measured comparison of throughput with and without waiting."""

from __future__ import annotations

from enum import Enum, auto
from math import log

_IGNORED_BATCHES = 3  # batches after a change that are ignored
_COUNTED_BATCHES = 12  # measured batches of a period
_MEMORY = 0.7
_MARGIN = 0.02  # minimum relative gain of waiting
_MAX_GAIN = 0.3  # limit of a logarithmic gain, so that one disturbed period does not decide
_MIN_PAUSE, _MAX_PAUSE = 2, 16  # pause between trials, in periods


class _Stage(Enum):
    STEADY, TRIAL, AFTER = auto(), auto(), auto()


class Trials:
    """Decides whether to wait, by trying the alternative now and then for one period.

    The alternative with the higher rate is kept. Batch costs are known only for sizes that ran. A
    policy that always waits sees one size, assumes that half of its cost is fixed, and keeps
    waiting. A trial measures the real effect and adds other sizes to the cost model. The rate of a
    trial is compared with the periods before and after it, so that slow changes of load or hardware
    cancel out.
    """

    def __init__(self) -> None:
        self.waits = True
        self._preferred = True
        self._advantage: float | None = None  # advantage of waiting, as a logarithm of rates
        self._stage = _Stage.STEADY
        self._pause = _MIN_PAUSE
        self._periods = 0
        self._rate_before = self._trial_rate = 0.0
        self._batches = self._rows = self._begin_ns = 0

    def learn(self, rows: int, now_ns: int) -> None:
        """Record a batch that starts."""
        self._batches += 1
        if self._batches == _IGNORED_BATCHES:
            self._begin_ns, self._rows = now_ns, 0
        elif self._batches == _IGNORED_BATCHES + _COUNTED_BATCHES:
            self._batches = 0
            self._end_period(log(max(self._rows, 1) / max(now_ns - self._begin_ns, 1)))
        self._rows += rows

    def _end_period(self, rate: float) -> None:
        if self._stage is _Stage.STEADY:
            self._rate_before = rate
            self._periods += 1
            if self._periods >= self._pause:
                self._stage, self.waits = _Stage.TRIAL, not self._preferred
        elif self._stage is _Stage.TRIAL:
            self._trial_rate = rate
            self._stage, self.waits = _Stage.AFTER, self._preferred
        else:
            self._decide(self._trial_rate - (self._rate_before + rate) / 2)

    def _decide(self, gain: float) -> None:
        """Update the preference. `gain` is the logarithmic difference of the last trial's rate."""
        value = min(max(-gain if self._preferred else gain, -_MAX_GAIN), _MAX_GAIN)
        known = self._advantage
        self._advantage = value if known is None else _MEMORY * known + (1 - _MEMORY) * value
        better = self._advantage > _MARGIN
        self._pause = min(2 * self._pause, _MAX_PAUSE) if better is self._preferred else _MIN_PAUSE
        self.waits = self._preferred = better
        self._stage, self._periods = _Stage.STEADY, 0
