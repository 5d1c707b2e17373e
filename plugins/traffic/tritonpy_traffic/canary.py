"""State machine of one canary: steps, failure budget and outcome. Callers provide the time."""

from __future__ import annotations

import enum

from tritonpy_traffic.canary_limits import ResponseStats, find_violation
from tritonpy_traffic.spec import Canary, CanaryStep

EVALUATION_INTERVAL_NS = 50_000_000


class CanaryState(enum.Enum):
    """State of a canary."""

    RUNNING = "running"
    WAITING = "waiting"  # after the last step, until an operator promotes it
    ROLLED_BACK = "rolled back"
    PROMOTED = "promoted"


class FailureBudget:
    """Failure budget of one step: a limit of the canary's failures among the route's responses.

    Invariant: `failures + open <= max_share * responses`, with `open` requests of the canary in
    flight. So the failures never exceed that share, even if all requests in flight fail. Requests
    of sequences, which cannot change targets, are counted without a check.
    """

    __slots__ = ("failures", "max_share", "open", "responses")

    def __init__(self, max_share: float) -> None:
        self.max_share = max_share
        self.responses = self.failures = self.open = 0

    def can_reserve(self) -> bool:
        """Return whether the budget allows the failure of one more request."""
        return self.failures + self.open + 1 <= self.max_share * self.responses

    def begin_request(self) -> None:
        """Count a request to the canary."""
        self.open += 1

    def end_request(self, *, counted: bool, failed: bool) -> None:
        """Count the end of a request.

        A request that the client cancelled, or that another target served, counts as no response.
        """
        self.open -= 1
        self.responses += counted
        self.failures += failed


class CanaryRun:
    """The run of one canary of a route. The caller holds the route's lock.

    The limits are checked twice. The responses of the current step show if the canary has become
    worse. All responses give more evidence.
    """

    def __init__(
        self, spec: Canary, now_ns: int, state: CanaryState = CanaryState.RUNNING, step: int = 0
    ) -> None:
        self.spec = spec
        self.state = state
        self.reason = ""
        self._alpha = (1 - spec.limits.confidence) / 2
        self._canary_total, self._primary_total = ResponseStats(), ResponseStats()
        self._begin(min(step, len(spec.steps) - 1), now_ns)

    def _begin(self, step: int, now_ns: int) -> None:
        self.step = step
        self.since_ns = now_ns
        self.next_evaluation_ns = now_ns + EVALUATION_INTERVAL_NS
        self.canary, self.primary = ResponseStats(), ResponseStats()
        self.failure_budget = FailureBudget(self.spec.max_failed_share)

    def record_response(self, ns: int, *, failed: bool) -> None:
        """Record a response of the canary."""
        self.canary.add(ns, failed)
        self._canary_total.add(ns, failed)

    def record_primary_response(self, ns: int, *, failed: bool) -> None:
        """Record a response of the primary."""
        self.primary.add(ns, failed)
        self._primary_total.add(ns, failed)

    @property
    def current(self) -> CanaryStep:
        """The current step."""
        return self.spec.steps[self.step]

    @property
    def is_live(self) -> bool:
        """Whether the canary receives requests."""
        return self.state in {CanaryState.RUNNING, CanaryState.WAITING}

    @property
    def share(self) -> float:
        """The canary's share of the requests, as far as its failure budget allows."""
        return self.current.share if self.is_live else 0.0

    def evaluate(self, now_ns: int) -> bool:
        """Check the limits of the canary, and start the next step if the current one is complete.

        Returns whether the state or the step changed.
        """
        if not self.is_live:
            return False
        self.next_evaluation_ns = now_ns + EVALUATION_INTERVAL_NS
        limits, per_step = self.spec.limits, self._alpha / len(self.spec.steps)
        reason = find_violation(limits, self.canary, self.primary, per_step) or find_violation(
            limits, self._canary_total, self._primary_total, self._alpha
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
        return (
            self.canary.responses >= step.requests and now_ns - self.since_ns >= step.seconds * 1e9
        )

    def roll_back(self, reason: str) -> None:
        """Stop sending requests to the canary."""
        self.state, self.reason = CanaryState.ROLLED_BACK, reason
