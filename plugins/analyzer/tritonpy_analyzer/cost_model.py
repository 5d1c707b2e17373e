"""What an execution costs, and the rate that a configuration is predicted to reach.

The prediction selects the configurations that are worth measuring. It never decides between them.
"""

from __future__ import annotations

import heapq
import math
import random
from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Mapping, Sequence
from itertools import accumulate, pairwise
from typing import Any

import msgspec

from tritonpy_analyzer.space import BATCH, BATCHING, DELAY, INSTANCES
from tritonpy_config.tuning import Setting

_REQUESTS = 1500
_STEPS = 9
_RANGE = 4.0
"""The simulated rates reach from this fraction of the capacity to the capacity itself."""


class Execution(msgspec.Struct, frozen=True):
    """Executions of one batch size with a number of instances: count and total time in seconds."""

    instances: int
    batch: int
    count: int
    seconds: float


class ExecutionCost(msgspec.Struct, frozen=True):
    """The time of an execution of n rows: `(fixed_s + row_s * n) * slowdown(instances)`."""

    fixed_s: float
    row_s: float
    slowdowns: dict[int, float]
    """Time with several instances as a multiple of the time with one, as measured."""

    def seconds(self, batch: int, instances: int) -> float:
        """Return the predicted time of an execution, at least a microsecond."""
        alone = self.fixed_s + self.row_s * batch
        return max(alone * self.slowdown(instances), 1e-6)

    def slowdown(self, instances: int) -> float:
        """Return the slowdown, interpolated and extrapolated from the measured ones."""
        known = sorted({1: 1.0, **self.slowdowns}.items())
        for (low, below), (high, above) in pairwise(known):
            if instances <= high:
                return below + (above - below) * (instances - low) / (high - low)
        if len(known) == 1:
            return 1.0
        (low, below), (high, above) = known[-2:]
        return max(above + (above - below) * (instances - high) / (high - low), 1.0)

    def capacity(self, values: Mapping[str, Setting]) -> float:
        """Return the highest throughput of a configuration in rows per second."""
        instances = int(values.get(INSTANCES, 1))
        batch = int(values.get(BATCH, 1)) if values.get(BATCHING) else 1
        return instances * batch / self.seconds(batch, instances)


def fit_cost(executions: Sequence[Execution]) -> ExecutionCost | None:
    """Fit the cost of executions by weighted least squares; None without any.

    Weights are the counts, so that a batch size that was seen once has little influence.
    """
    single = [each for each in executions if each.instances == 1 and each.count]
    if not single:
        return None
    total = sum(each.count for each in single)
    mean_batch = sum(each.batch * each.count for each in single) / total
    mean_s = sum(each.seconds for each in single) / total
    spread = sum(each.count * (each.batch - mean_batch) ** 2 for each in single)
    row_s = 0.0
    if spread:
        joint = sum(
            each.count * (each.batch - mean_batch) * (each.seconds / each.count - mean_s)
            for each in single
        )
        row_s = max(joint / spread, 0.0)
    fixed_s = mean_s - row_s * mean_batch
    if fixed_s < 0:  # the cost grows faster than linearly
        fixed_s, row_s = 0.0, mean_s / mean_batch
    alone = ExecutionCost(fixed_s, row_s, {})
    slowdowns: dict[int, float] = {}
    for count in sorted({each.instances for each in executions} - {1}):
        several = [each for each in executions if each.instances == count]
        predicted = sum(each.count * alone.seconds(each.batch, 1) for each in several)
        slowdowns[count] = max(sum(each.seconds for each in several) / predicted, 0.5)
    return ExecutionCost(fixed_s, row_s, slowdowns)


def executions_between(
    before: Sequence[Mapping[str, Any]], after: Sequence[Mapping[str, Any]], instances: int
) -> list[Execution]:
    """Return the executions between two readings of a model's statistics, by batch size."""
    earlier, later = _by_batch(before), _by_batch(after)
    found = []
    for batch, (count, ns) in sorted(later.items()):
        old_count, old_ns = earlier.get(batch, (0, 0))
        if count < old_count:  # the model was reloaded
            old_count = old_ns = 0
        if count > old_count:
            found.append(Execution(instances, batch, count - old_count, (ns - old_ns) / 1e9))
    return found


def _by_batch(reading: Sequence[Mapping[str, Any]]) -> dict[int, tuple[int, int]]:
    found: dict[int, tuple[int, int]] = {}
    for version in reading:
        for batch in version.get("batch_stats", ()):
            size = int(batch.get("batch_size", 0))
            parts = [
                batch.get(name, {}) for name in ("compute_input", "compute_infer", "compute_output")
            ]
            count, ns = found.get(size, (0, 0))
            found[size] = (
                count + int(parts[1].get("count", 0)),
                ns + sum(int(part.get("ns", 0)) for part in parts),
            )
    return found


class QueueSimulation:
    """Predicts latencies of a dynamic batcher for Poisson arrivals.

    All configurations see the same arrivals, so that their differences are not random.
    """

    def __init__(self, cost: ExecutionCost, overhead_s: float, seed: int) -> None:
        rng = random.Random(seed)  # noqa: S311  not for security
        self._arrivals = list(accumulate(rng.expovariate(1.0) for _ in range(_REQUESTS)))
        self._cost = cost
        self._overhead_s = overhead_s

    def rate(self, values: Mapping[str, Setting], limit_s: float, share: float) -> float:
        """Return the highest rate at which at most `share` of the requests exceed the limit."""
        service = self._service(values)
        limit_s -= self._overhead_s
        if service[1] > limit_s:
            return 0.0
        low = math.log(self._cost.capacity(values) / _RANGE)
        high = low + math.log(_RANGE * 1.05)
        most = share * _REQUESTS
        for _ in range(_STEPS):
            middle = (low + high) / 2
            exceeding = 0
            for first, last, end, arrivals in self._executions(values, service, math.exp(middle)):
                exceeding += bisect_left(arrivals, end - limit_s, first, last) - first
                if exceeding > most:
                    break
            low, high = (low, middle) if exceeding > most else (middle, high)
        return math.exp(low)

    def latency(self, values: Mapping[str, Setting], rate: float, share: float) -> float:
        """Return the latency in seconds that a `share` of the requests exceed at a rate."""
        latencies: list[float] = []
        for first, last, end, arrivals in self._executions(values, self._service(values), rate):
            latencies += [end - at for at in arrivals[first:last]]
        latencies.sort()
        return latencies[int((1 - share) * (len(latencies) - 1))] + self._overhead_s

    def _service(self, values: Mapping[str, Setting]) -> list[float]:
        """Return the time of an execution by batch size."""
        instances = int(values.get(INSTANCES, 1))
        batch = int(values.get(BATCH, 1)) if values.get(BATCHING) else 1
        return [self._cost.seconds(max(size, 1), instances) for size in range(batch + 1)]

    def _executions(
        self, values: Mapping[str, Setting], service: Sequence[float], rate: float
    ) -> Iterator[tuple[int, int, float, Sequence[float]]]:
        """Yield the first and the last request, the end, and all arrivals, per execution."""
        arrivals = [at / rate for at in self._arrivals]
        batch, count = len(service) - 1, len(arrivals)
        delay_s = float(values.get(DELAY, 0)) / 1e6
        free = [0.0] * int(values.get(INSTANCES, 1))
        first = 0
        while first < count:
            start = max(free[0], arrivals[first])
            if delay_s and batch > 1:
                full = arrivals[first + batch - 1] if first + batch <= count else math.inf
                start = max(start, min(full, arrivals[first] + delay_s))
            last = bisect_right(arrivals, start, first + 1, min(first + batch, count))
            end = start + service[last - first]
            yield first, last, end, arrivals
            heapq.heapreplace(free, end)
            first = last
