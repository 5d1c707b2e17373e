"""A canary on its way: its steps, what it may cost, and when it is over. No clock, no threads: times are given."""

from __future__ import annotations

import enum

from tritonpy_traffic.judgement import Sample, judge
from tritonpy_traffic.spec import Canary, Step

LOOK_EVERY_NS = 50_000_000


class CanaryState(enum.Enum):
    """How far it has come."""

    RUNNING = "running"
    WAITING = "waiting"  # behind its last step, for somebody to promote it
    ROLLED_BACK = "rolled back"
    PROMOTED = "promoted"


class Ledger:
    """What one step cost: the route's answers, the canary's failures among them, and its requests that are open.

    Invariant: `failures + open <= max_share * answers`, so that the failures never are more than that share of the answers, whatever becomes
    of what is open. Requests of sequences, which cannot go elsewhere, are let in without being asked; they are booked all the same.
    """

    __slots__ = ("answers", "failures", "max_share", "open")

    def __init__(self, max_share: float) -> None:
        self.max_share = max_share
        self.answers = self.failures = self.open = 0

    def has_room(self) -> bool:
        """Say whether one more may fail."""
        return self.failures + self.open + 1 <= self.max_share * self.answers

    def enter(self) -> None:
        """Book a request of the canary."""
        self.open += 1

    def leave(self, *, answered: bool, failed: bool) -> None:
        """Book its end; one that the client cancelled, or that another target answered, is no answer."""
        self.open -= 1
        self.answers += answered
        self.failures += failed


class CanaryRun:
    """One canary of one route. The caller holds the route's lock.

    It is judged by the answers of its step, in which it may have become worse, and by those of its whole life, which are more.
    """

    def __init__(self, spec: Canary, now_ns: int, state: CanaryState = CanaryState.RUNNING, step: int = 0) -> None:
        self.spec = spec
        self.state = state
        self.reason = ""
        self._doubt = (1 - spec.limits.confidence) / 2
        self._canary_ever, self._primary_ever = Sample(), Sample()
        self._begin(min(step, len(spec.steps) - 1), now_ns)

    def _begin(self, step: int, now_ns: int) -> None:
        self.step = step
        self.since_ns = now_ns
        self.look_ns = now_ns + LOOK_EVERY_NS
        self.canary, self.primary = Sample(), Sample()
        self.ledger = Ledger(self.spec.max_failed_share)

    def answered(self, ns: int, *, failed: bool) -> None:
        """Take note of an answer of the canary."""
        self.canary.add(ns, failed)
        self._canary_ever.add(ns, failed)

    def primary_answered(self, ns: int, *, failed: bool) -> None:
        """Take note of an answer of the primary."""
        self.primary.add(ns, failed)
        self._primary_ever.add(ns, failed)

    @property
    def current(self) -> Step:
        """The step that it is in."""
        return self.spec.steps[self.step]

    @property
    def live(self) -> bool:
        """Whether it gets requests."""
        return self.state in {CanaryState.RUNNING, CanaryState.WAITING}

    @property
    def share(self) -> float:
        """The share of the requests that it gets, as far as it may fail."""
        return self.current.share if self.live else 0.0

    def look(self, now_ns: int) -> bool:
        """Judge it and go on where it is time to; returns whether it is in another state or step now."""
        if not self.live:
            return False
        self.look_ns = now_ns + LOOK_EVERY_NS
        limits, per_step = self.spec.limits, self._doubt / len(self.spec.steps)
        reason = judge(limits, self.canary, self.primary, per_step) or judge(
            limits, self._canary_ever, self._primary_ever, self._doubt
        )
        if reason:
            self.roll_back(reason)
            return True
        if self.state is CanaryState.WAITING or not self._step_is_over(now_ns):
            return False
        if self.step + 1 < len(self.spec.steps):
            self._begin(self.step + 1, now_ns)
        else:
            self.state = CanaryState.PROMOTED if self.spec.promote else CanaryState.WAITING
        return True

    def _step_is_over(self, now_ns: int) -> bool:
        step = self.current
        return self.canary.answers >= step.requests and now_ns - self.since_ns >= step.seconds * 1e9

    def roll_back(self, reason: str) -> None:
        """Give it no further requests."""
        self.state, self.reason = CanaryState.ROLLED_BACK, reason
