"""The batch policy "slo": the largest batches that keep a latency target."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate, takewhile
from typing import TYPE_CHECKING

from tritonpy import InvalidArgument
from tritonpy.scheduling import BatchPolicy, Pending, Run, Wait
from tritonpy_batching_slo.cost import CostModel
from tritonpy_batching_slo.quantile import Quantile
from tritonpy_batching_slo.rate import Rate
from tritonpy_batching_slo.trials import Trials
from tritonpy_batching_slo.wait_tuner import WaitTuner, longest_wait

if TYPE_CHECKING:
    from tritonpy_protos.model_config_pb2 import ModelConfig

TARGET = "slo_ms"
_TARGET_SHARE = 0.95  # share of the target, because sending responses takes time
# Share of the highest throughput, for a queue that is too long for the target.
_THROUGHPUT_SHARE = 0.97
_HEADROOM = 1.1  # minimum throughput of a batch size relative to the arrival rate


class SloPolicy(BatchPolicy):
    """Keeps the latency of requests within `slo_ms` at the highest possible throughput.

    A batch is as large as the target allows while all instances are busy. In that case, a request
    waits for the end of one batch and runs in the next. Batches are never so small that requests
    arrive faster than they run. Requests that miss the target run in batches of nearly full
    throughput. No request is dropped. An instance waits for further requests only while that
    increases throughput and every pending request can still meet the target. `WaitTuner` estimates
    the gain from batch costs, `Trials` measures it.
    """

    def __init__(self, config: ModelConfig) -> None:
        super().__init__(config)
        self._target_ns = int(_target_ms(config) * 1e6 * _TARGET_SHARE)
        self._largest = max(1, config.max_batch_size)
        self._instances = 1
        self._costs = CostModel()
        self._wait_tuner = WaitTuner()
        self._trials = Trials()
        self._steady_rows = self._quick_rows = self._largest
        # How long the oldest request has waited when an instance becomes free, in batch durations.
        self._waits = Quantile(0.9, 0.05, 1.0)
        self._opportunity = (0, 0)  # start of the last opportunity, and its pending rows
        self._arrivals: list[tuple[int, int]] = []  # arrivals since then: (time, rows)
        self._last_arrival_ns = 0
        self._last_rows = 1
        self._demand = Rate()

    def instances_changed(self, count: int) -> None:
        """Set the number of instances that run batches."""
        self._instances = max(1, count)
        self._set_sizes()

    def plan(self, pending: Pending, now_ns: int) -> Run | Wait:
        """Decide by the cost of the batch and the age of the oldest request."""
        costs, rows = self._costs, pending.rows
        due_ns = pending.oldest_ns + self._target_ns
        limit = self._limit(rows, due_ns - now_ns)
        if rows > limit:
            return Run(_fitting(pending.sizes, limit))
        wait_factor = self._wait_tuner.wait_factor if self._trials.waits else 0.0
        if wait_factor and not pending.closed and rows < limit:
            since_ns = pending.since_ns or now_ns
            last_ns = max(pending.requests[-1].queued_ns, since_ns)
            until_ns = last_ns + longest_wait(costs, rows, last_ns - since_ns, wait_factor)
            until_ns = int(min(until_ns, due_ns - costs.tail_cost(rows)))
            if until_ns > now_ns:
                return Wait(until_ns)
        return Run(len(pending.sizes))

    def cut(self, pending: Pending, count: int, now_ns: int) -> None:
        """Learn from the latest arrivals whether a longer wait would have been better."""
        fresh = [
            (request.queued_ns, rows)
            for request, rows in zip(pending.requests, pending.sizes, strict=True)
            if request.queued_ns > self._last_arrival_ns
        ]
        if fresh:
            self._last_arrival_ns = fresh[-1][0]
        self._arrivals += fresh
        begin_ns, rows = self._opportunity
        if 0 < rows < self._steady_rows and self._trials.waits:
            self._wait_tuner.learn(self._costs, begin_ns, rows, self._arrivals, self._steady_rows)
        begin_ns = pending.since_ns
        if costs := self._costs.cost(self._last_rows):
            self._waits.learn(min((begin_ns - pending.oldest_ns) / costs, 1.0))
        self._last_rows = sum(pending.sizes[:count])
        self._demand.learn(self._last_rows, now_ns)
        self._trials.learn(self._last_rows, now_ns)
        self._arrivals = [arrival for arrival in self._arrivals if arrival[0] > begin_ns]
        self._opportunity = begin_ns, pending.rows - sum(rows for _, rows in self._arrivals)

    def executed(self, size: int, duration_ns: int) -> None:
        """Learn the cost of a batch of `size` rows."""
        self._costs.learn(size, duration_ns)
        self._set_sizes()

    def _limit(self, rows: int, left_ns: int) -> int:
        """Return the limit of the rows that run now. The oldest of `rows` has `left_ns` left."""
        costs, limit = self._costs, self._steady_rows
        if rows <= limit:
            return limit
        if left_ns < costs.tail_cost(limit):
            return max(limit, self._quick_rows)
        drained_ns = costs.tail_cost(limit) * (rows / limit / self._instances)
        return max(limit, costs.max_rows(left_ns / costs.tail)) if drained_ns > left_ns else limit

    def _set_sizes(self) -> None:
        costs, largest = self._costs, self._largest
        self._steady_rows = min(
            largest, costs.max_rows(self._target_ns / (costs.tail + self._waits.value))
        )
        self._quick_rows = self._rows_for(
            _THROUGHPUT_SHARE * largest / max(costs.cost(largest), 1.0)
        )
        needed = self._rows_for(
            min(_HEADROOM * self._demand.value / self._instances, self._quick_rate())
        )
        self._steady_rows = max(self._steady_rows, needed)

    def _quick_rate(self) -> float:
        return self._quick_rows / max(self._costs.cost(self._quick_rows), 1.0)

    def _rows_for(self, rate: float) -> int:
        """Return the smallest batch size that reaches `rate` rows per ns on one instance."""
        left = 1 - rate * self._costs.row_ns
        return (
            min(self._largest, int(rate * self._costs.fixed_ns / left) + 1)
            if left > 0
            else self._largest
        )


def _fitting(sizes: Sequence[int], limit: int) -> int:
    return max(1, sum(1 for _ in takewhile(lambda rows: rows <= limit, accumulate(sizes))))


def _target_ms(config: ModelConfig) -> float:
    text = config.parameters[TARGET].string_value if TARGET in config.parameters else ""
    try:
        target = float(text)
    except ValueError:
        target = 0.0
    if not 0 < target < 1e9:
        raise InvalidArgument(
            f"model '{config.name}': the batch policy 'slo' needs a parameter '{TARGET}', "
            f"the latency target in milliseconds, it is '{text}'"
        )
    return target
