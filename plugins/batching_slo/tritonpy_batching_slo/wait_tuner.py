"""How long a free instance waits for more requests, learned from arrival times."""

from __future__ import annotations

from collections.abc import Sequence

from tritonpy_batching_slo.cost import CostModel

# Shares of the longest wait that can increase the rate. With n rows after w ns of waiting, it is
# (fixed + w) / n for the next row, where `fixed` is the fixed cost of a batch.
WAIT_FACTORS = (0.0, 1 / 64, 1 / 16, 1 / 4, 1.0)
_MEMORY = 0.95
_ADVANTAGE = 1.02  # minimum gain of waiting over not waiting, in rows per ns


class WaitTuner:
    """Selects the wait factor that would have given the highest rate.

    Every opportunity to run a batch is simulated with all factors. An opportunity begins when an
    instance is free and requests are pending. The best factor depends on the clients: closed-loop
    clients send a burst after each batch, others arrive independently.
    """

    def __init__(self) -> None:
        self.wait_factor = 0.0
        self._rows = [0.0] * len(WAIT_FACTORS)
        self._costs = [0.0] * len(WAIT_FACTORS)

    def learn(
        self,
        costs: CostModel,
        begin_ns: int,
        rows: int,
        arrivals: Sequence[tuple[int, int]],
        limit: int,
    ) -> None:
        """Record an opportunity to run `rows` pending rows at `begin_ns`.

        `arrivals` holds (time, rows) of the requests that came afterwards.
        """
        if rows < 1 or not costs.fixed_ns:
            return
        for index, wait_factor in enumerate(WAIT_FACTORS):
            gathered, waited_ns = _simulate(costs, begin_ns, rows, arrivals, limit, wait_factor)
            self._rows[index] = _MEMORY * self._rows[index] + gathered
            self._costs[index] = _MEMORY * self._costs[index] + costs.cost(gathered) + waited_ns
        rates = [each / cost for each, cost in zip(self._rows, self._costs, strict=True)]
        best = max(range(len(WAIT_FACTORS)), key=rates.__getitem__)
        self.wait_factor = WAIT_FACTORS[best] if rates[best] > _ADVANTAGE * rates[0] else 0.0


def longest_wait(costs: CostModel, rows: int, waited_ns: float, wait_factor: float) -> float:
    """Return how many more ns to wait with `rows` pending after `waited_ns` of waiting."""
    return wait_factor * (costs.fixed_ns + waited_ns) / rows


def _simulate(
    costs: CostModel,
    begin_ns: int,
    rows: int,
    arrivals: Sequence[tuple[int, int]],
    limit: int,
    wait_factor: float,
) -> tuple[int, float]:
    """Return the gathered rows and the waiting time in ns."""
    last_ns = begin_ns
    if wait_factor:
        for at_ns, more in arrivals:
            until_ns = last_ns + longest_wait(costs, rows, last_ns - begin_ns, wait_factor)
            if at_ns > until_ns:
                return rows, until_ns - begin_ns
            if rows + more > limit:
                return rows, at_ns - begin_ns
            rows, last_ns = rows + more, at_ns
        if rows < limit:
            last_ns += int(longest_wait(costs, rows, last_ns - begin_ns, wait_factor))
    return rows, last_ns - begin_ns
