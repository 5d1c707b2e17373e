"""Races candidates against each other in alternating windows. Pure decisions, without I/O.

Each window of a challenger is compared with the nearest window of the reference, so that a machine
that becomes slower for a while affects both. The differences of the logarithms of a figure of merit
feed a confidence sequence, which may be looked at after every window.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from tritonpy_analyzer.goals import Constraint, Goals, Metric, latency_value
from tritonpy_analyzer.measuring import LoadWindow
from tritonpy_analyzer.space import Candidate
from tritonpy_metrics.confidence_bounds import mean_radius, rate_exceeds

ALPHA = 0.05
SAME = 0.02
"""Differences up to this size, in logarithms, are called "same"."""
_SLOPE = 30.0
"""Change of the logit of the exceeding share per change of the logarithm of the rate.

A lower bound: near its capacity, a queue is steeper.
"""
_NEAR = 0.4
"""Largest step, in logarithms, at which a window tells where the limit is."""
_FAR_STEP = 1.0
_MARGIN_SLOPE = 0.25
_KEEPING_UP = 0.97
_BELOW_CAPACITY = 0.03
"""How far the highest rate within a limit is below the capacity, in logarithms."""
_LEAST_ERROR = 0.03
"""The assumed error of predictions, in logarithms, if measurements agree with them."""
_HOPELESS = math.log(0.6)
_HALVING_ROUNDS = (3, 6, 12)


class RateEstimate:
    """Finds the rate at which a candidate just keeps its latency limits.

    Every window at a rate tells whether it was too high. The next rate is one Newton step away,
    and the mean of all estimates once they are close. `log_rate` is the next rate.
    """

    def __init__(self, rate: float, limits: Sequence[Constraint]) -> None:
        self.log_rate = math.log(rate)
        self._limits = limits
        self.estimates: list[float] = []
        self.settled = False
        """Whether the limit is known about, since it was approached from both sides."""
        self._signs: set[bool] = set()
        self._boost = 0.5

    @property
    def rate(self) -> float:
        """The rate of the next window."""
        return math.exp(self.log_rate)

    def add(self, window: LoadWindow) -> float | None:
        """Record a window; return the logarithm of the rate that it indicates, or None if far.

        Until one window was too fast and one too slow, the steps double.
        """
        used = math.log(window.level.value)
        step = rate_step(window, self._limits)
        estimate = used + step
        self._signs.add(step > 0)
        self.settled = self.settled or len(self._signs) == 2
        if abs(step) > _NEAR:
            self.estimates.clear()
        if not self.settled or abs(step) > _NEAR:
            self._boost = 1.0 if self.settled else min(2 * self._boost, 8.0)
            self.log_rate = used + max(-_FAR_STEP, min(self._boost * step, _FAR_STEP))
            return estimate if abs(step) < _NEAR / 4 else None
        self.estimates.append(estimate)
        recent = self.estimates[-8:]
        self.log_rate = sum(recent) / len(recent)
        return estimate


def rate_step(window: LoadWindow, limits: Sequence[Constraint]) -> float:
    """Return how far a window's rate is from the highest one within the limits, in logarithms.

    The throughput of a window whose queue grows is the capacity, which the rate must stay below.
    """
    step = min(_step(window, limit) for limit in limits)
    rate = window.level.value
    if step < 0 and window.rate < _KEEPING_UP * rate and window.succeeded:
        capacity = math.log(window.rate / rate) - _BELOW_CAPACITY
        return capacity if window.overloaded else max(step, capacity)
    return min(step, -2 * _NEAR) if window.overloaded else step


def _step(window: LoadWindow, limit: Constraint) -> float:
    allowed = 1 - (limit.metric.percentile or 0.0) / 100
    shares = []
    for histogram in window.latencies.values():
        failed = window.failed if len(window.latencies) == 1 else 0
        count = histogram.total + failed
        above = histogram.count_above(limit.limit * 1e9) + failed
        shares.append((above + 0.5) / (count + 1))
    step = (_logit(allowed) - _logit(max(shares))) / _SLOPE
    slowest_s = max(each.most for each in window.latencies.values()) / 1e9
    if slowest_s and slowest_s < limit.limit and not window.failed:
        # No request is beyond the limit: how far they stay below it tells more than their number.
        step = max(step, _MARGIN_SLOPE * math.log(limit.limit / slowest_s))
    return step


def _logit(share: float) -> float:
    bounded = min(max(share, 1e-9), 1 - 1e-9)
    return math.log(bounded / (1 - bounded))


def merits(window: LoadWindow, goals: Goals) -> tuple[float, ...]:
    """Return the logarithm of each objective in a window; higher is better."""
    found = []
    for objective in goals.objectives:
        value = math.log(max(metric_value(objective.metric, window), 1e-12))
        found.append(value if objective.maximize else -value)
    return tuple(found)


def metric_value(metric: Metric, window: LoadWindow) -> float:
    """Return a metric of a window: seconds, bytes, requests per second, or a share."""
    match metric:
        case Metric.RATE:
            return window.rate
        case Metric.MEMORY_CPU:
            return float(window.memory_cpu)
        case Metric.MEMORY_GPU:
            return float(window.memory_gpu)
        case Metric.ERRORS:
            return window.failed / max(window.failed + window.succeeded, 1)
        case Metric.TTFT:
            return window.first.percentile(99) / 1e9
        case Metric.ITL:
            return window.between.percentile(99) / 1e9
    return latency_value(metric, window.latency)


@dataclass(slots=True)
class RaceEntry:
    """A candidate of a race: its windows, and its merits relative to the reference by round."""

    candidate: Candidate
    windows: list[LoadWindow] = field(default_factory=list)
    relative: dict[int, tuple[float, ...]] = field(default_factory=dict)
    rate: RateEstimate | None = None
    out: str = ""
    """Why the candidate left the race, or ""."""


@dataclass(frozen=True, slots=True)
class Comparison:
    """The gain of one candidate over another: the mean of log ratios, and its interval."""

    mean: float
    radius: float
    pairs: int

    @property
    def low(self) -> float:
        """The lower bound of the ratio."""
        return math.exp(self.mean - self.radius) if self.radius < 50 else 0.0

    @property
    def high(self) -> float:
        """The upper bound of the ratio."""
        return math.exp(self.mean + self.radius) if self.radius < 50 else math.inf

    @property
    def ratio(self) -> float:
        """The estimated ratio."""
        return math.exp(self.mean)

    @property
    def verdict(self) -> str:
        """`better`, `worse`, `same` (within 2 %), or `open` if the data do not decide."""
        if self.mean - self.radius > 0:
            return "better"
        if self.mean + self.radius < 0:
            return "worse"
        if abs(self.mean) + self.radius <= SAME:
            return "same"
        return "open"


@dataclass(frozen=True, slots=True)
class Estimate:
    """An estimated log gain over the reference of a race, and its standard error."""

    gain: float
    error: float

    @property
    def cautious(self) -> float:
        """The gain less one standard error."""
        return self.gain - self.error


_UNKNOWN = Estimate(-math.inf, 0.0)


class Race:
    """A race of candidates; the first one is the reference.

    Call `order` for the windows of a round, `record` for each of them, and `settle` at the end of
    the round.
    """

    def __init__(
        self,
        candidates: Sequence[Candidate],
        goals: Goals,
        start_rate: Callable[[Candidate], float],
        predicted: Callable[[Candidate], float] = lambda _candidate: 0.0,
        alpha: float = ALPHA,
    ) -> None:
        self._goals = goals
        self._predicted = predicted
        self.entries = {
            each: RaceEntry(
                each,
                rate=RateEstimate(start_rate(each), goals.latency_limits)
                if goals.finds_rate
                else None,
            )
            for each in candidates
        }
        self.reference = candidates[0]
        self.round = 0
        self._alpha = alpha / max(len(candidates) - 1, 1)
        self._last: tuple[float, ...] | None = None
        self._waiting: list[tuple[RaceEntry, tuple[float, ...]]] = []

    @property
    def alive(self) -> list[RaceEntry]:
        """The candidates in the race, without the reference."""
        return [
            each
            for each in self.entries.values()
            if not each.out and each.candidate != self.reference
        ]

    @property
    def leader(self) -> RaceEntry:
        """The candidate in the race whose gain is the best, less one standard error.

        So a candidate with few windows does not lead by luck.
        """
        standing = [self.entries[self.reference], *self.alive]
        estimates = self.estimates()
        return max(standing, key=lambda each: estimates.get(each.candidate, _UNKNOWN).cautious)

    def estimates(self) -> dict[Candidate, Estimate]:
        """Return the estimated log gain over the reference of each candidate with measurements.

        It is the mean of the measured differences and the predicted one, weighted by their errors.
        The error of the predictions is that with which they agree with the measurements of this
        race.
        """
        means = {
            each.candidate: self.compare(each.candidate, self.reference)
            for each in self.entries.values()
            if each.relative
        }
        noise = self._noise()
        found = {
            each: Estimate(comparison.mean, math.sqrt(noise / comparison.pairs))
            for each, comparison in means.items()
        }
        base = self._predicted(self.reference)
        expected = {each: self._predicted(each) for each in means}
        if noise and base > 0 and all(value > 0 for value in expected.values()):
            gains = {each: math.log(value / base) for each, value in expected.items()}
            apart = [
                (means[each].mean - gains[each]) ** 2 - noise / means[each].pairs for each in means
            ]
            error = max(sum(apart) / len(apart), _LEAST_ERROR**2)
            for each, comparison in means.items():
                weight = comparison.pairs / noise
                total = weight + 1 / error
                mean = (comparison.mean * weight + gains[each] / error) / total
                found[each] = Estimate(mean, math.sqrt(1 / total))
        found[self.reference] = Estimate(0.0, 0.0)
        return found

    def _noise(self) -> float:
        """Return the pooled variance of the differences of one pair; 0 if it is not known."""
        squares = freedom = 0.0
        for entry in self.entries.values():
            values = [each[0] for each in entry.relative.values()]
            if len(values) >= 2:
                mean = sum(values) / len(values)
                squares += sum((value - mean) ** 2 for value in values)
                freedom += len(values) - 1
        return max(squares / freedom, 1e-6) if freedom else 0.0

    @property
    def decided(self) -> bool:
        """Whether every other candidate is out, or known to be as good as the leader or worse."""
        leader = self.leader.candidate
        standing = [self.entries[self.reference], *self.alive]
        return all(
            each.candidate == leader
            or self.compare(each.candidate, leader).verdict in {"same", "worse"}
            for each in standing
        )

    @property
    def overtaken(self) -> bool:
        """Whether the leader is certainly better than the reference."""
        leader = self.leader.candidate
        return leader != self.reference and self.compare(leader, self.reference).verdict == "better"

    def remove(self, candidate: Candidate) -> None:
        """Remove a candidate as if it had never been part of the race."""
        if candidate != self.reference:
            del self.entries[candidate]

    def order(self) -> list[Candidate]:
        """Return the candidates of the next round: the reference, two challengers, and so on.

        The order is reversed in every other round.
        """
        order = [self.reference]
        for at, entry in enumerate(self.alive):
            order.append(entry.candidate)
            if at % 2:
                order.append(self.reference)
        return order[::-1] if self.round % 2 else order

    def record(self, candidate: Candidate, window: LoadWindow) -> None:
        """Record a window of the present round."""
        entry = self.entries[candidate]
        if window.invalid:
            entry.out = f"refused: {window.invalid}"
            return
        if window.dropped:
            return
        entry.windows.append(window)
        merit = self._merit(entry, window)
        if merit is None:
            return
        if candidate == self.reference:
            self._last = merit
            for waiting, other in self._waiting:
                self._pair(waiting, other, merit)
            self._waiting.clear()
        elif self._last is not None:
            self._pair(entry, merit, self._last)
            self._last = None  # the next challenger waits for the next reference window
        else:
            self._waiting.append((entry, merit))

    def _merit(self, entry: RaceEntry, window: LoadWindow) -> tuple[float, ...] | None:
        if entry.rate is None:
            return merits(window, self._goals)
        estimate = entry.rate.add(window)
        if estimate is None:
            return None
        return (estimate, *merits(window, self._goals)[1:])

    def _pair(
        self, entry: RaceEntry, merit: tuple[float, ...], reference: tuple[float, ...]
    ) -> None:
        entry.relative[self.round] = tuple(
            own - other for own, other in zip(merit, reference, strict=True)
        )

    def settle(self) -> None:
        """End the round: remove candidates that cannot win, and start the next round."""
        self.round += 1
        self._last = None
        self._waiting.clear()
        for entry in self.alive:
            entry.out = self._violation(entry)
        self._remove_hopeless()
        for entry in self.alive:
            entry.out = self._dominator(entry)
        if self.round in _HALVING_ROUNDS and len(self._goals.objectives) == 1:
            self._halve()

    def _remove_hopeless(self) -> None:
        """Remove candidates whose rate is far below the reference's after three windows."""
        reference = self.entries[self.reference]
        if reference.rate is None or not reference.rate.estimates:
            return
        for entry in self.alive:
            assert entry.rate is not None  # noqa: S101  all entries have one or none has
            far = entry.rate.log_rate - reference.rate.log_rate < _HOPELESS
            if len(entry.windows) >= 3 and far and not entry.out:
                entry.out = "worse: overloaded at much lower rates"

    def _violation(self, entry: RaceEntry) -> str:
        """Return the constraint that a candidate certainly violates, or ""."""
        for constraint in self._goals.constraints:
            if self._goals.finds_rate and constraint in self._goals.latency_limits:
                continue
            if violates(entry.windows, constraint, self._alpha):
                return f"violates {constraint}"
        failed = sum(each.failed for each in entry.windows)
        count = failed + sum(each.succeeded for each in entry.windows)
        if failed and rate_exceeds(failed, count, 0.01, self._alpha):
            return f"requests fail: {entry.windows[-1].error}"
        return ""

    def _dominator(self, entry: RaceEntry) -> str:
        standing = [self.entries[self.reference], *self.alive]
        for other in standing:
            if other is entry:
                continue
            found = [
                self.compare(entry.candidate, other.candidate, number)
                for number in range(len(self._goals.objectives))
            ]
            if all(each.verdict == "worse" for each in found):
                return f"worse than {other.candidate.describe()}"
        return ""

    def _halve(self) -> None:
        """Remove the worse half, except candidates within 2 % of the leader."""
        estimates = self.estimates()
        best = max(each.gain for each in estimates.values())
        ranked = sorted(self.alive, key=lambda each: -estimates.get(each.candidate, _UNKNOWN).gain)
        for entry in ranked[math.ceil(len(ranked) / 2) :]:
            if estimates.get(entry.candidate, _UNKNOWN).gain < best - SAME:
                entry.out = "among the worse half"

    def compare(self, candidate: Candidate, other: Candidate, objective: int = 0) -> Comparison:
        """Compare two candidates in the rounds in which both have a result."""
        if candidate == other:
            return Comparison(0.0, 0.0, 0)
        values = self._relative(candidate, other, objective)
        if not values:
            return Comparison(-math.inf if candidate != self.reference else 0.0, math.inf, 0)
        mean = sum(values) / len(values)
        return Comparison(mean, mean_radius(values, self._alpha), len(values))

    def _relative(self, candidate: Candidate, other: Candidate, objective: int) -> list[float]:
        ours, theirs = self.entries[candidate].relative, self.entries[other].relative
        if other == self.reference:
            return [each[objective] for each in ours.values()]
        if candidate == self.reference:
            return [-each[objective] for each in theirs.values()]
        return [
            ours[number][objective] - theirs[number][objective]
            for number in ours
            if number in theirs
        ]


def violates(windows: Sequence[LoadWindow], constraint: Constraint, alpha: float) -> bool:
    """Return whether windows show with certainty that a constraint is violated."""
    if not windows:
        return False
    percentile = constraint.metric.percentile
    if percentile is not None and constraint.upper:
        above = sum(each.latency.count_above(constraint.limit * 1e9) for each in windows)
        count = sum(each.latency.total for each in windows)
        return rate_exceeds(above, count, 1 - percentile / 100, alpha)
    if constraint.metric is Metric.ERRORS:
        failed = sum(each.failed for each in windows)
        count = failed + sum(each.succeeded for each in windows)
        return rate_exceeds(failed, count, constraint.limit, alpha)
    values = [constraint.violation(metric_value(constraint.metric, each)) for each in windows]
    if constraint.metric.kind == "size":  # peaks count, and memory is not noisy
        return max(values) > 0
    mean = sum(values) / len(values)
    return mean - mean_radius(values, alpha) > 0
