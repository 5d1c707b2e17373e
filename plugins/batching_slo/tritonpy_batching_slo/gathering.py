"""How long an instance had better wait for one more request, learnt from when requests came."""

from __future__ import annotations

from collections.abc import Sequence

from tritonpy_batching_slo.cost import CostModel

# Shares of the longest wait that can pay: with n rows there and w ns waited the next row is worth (fixed + w) / n.
PATIENCES = (0.0, 1 / 64, 1 / 16, 1 / 4, 1.0)
_MEMORY = 0.95
_ADVANTAGE = 1.02  # of a longer wait over none, in rows per ns


class Gathering:
    """Judges each patience by what would have come: every chance to cut a batch is played again with all of them.

    A chance begins when an instance is free and something waits. Which patience is the best one depends on the clients: those that answer an
    answer with a new request come in a swarm after each batch, others come as they like.
    """

    def __init__(self) -> None:
        self.patience = 0.0
        self._rows = [0.0] * len(PATIENCES)
        self._costs = [0.0] * len(PATIENCES)

    def learn(self, costs: CostModel, begin_ns: int, rows: int, arrivals: Sequence[tuple[int, int]], most: int) -> None:
        """Take note of a chance: `rows` were there at `begin_ns`, and `arrivals`, pairs of time and rows, came afterwards."""
        if rows < 1 or not costs.fixed_ns:
            return
        for index, patience in enumerate(PATIENCES):
            gathered, waited_ns = _play(costs, begin_ns, rows, arrivals, most, patience)
            self._rows[index] = _MEMORY * self._rows[index] + gathered
            self._costs[index] = _MEMORY * self._costs[index] + costs.cost(gathered) + waited_ns
        rates = [each / cost for each, cost in zip(self._rows, self._costs, strict=True)]
        best = max(range(len(PATIENCES)), key=rates.__getitem__)
        self.patience = PATIENCES[best] if rates[best] > _ADVANTAGE * rates[0] else 0.0


def longest_wait(costs: CostModel, rows: int, waited_ns: float, patience: float) -> float:
    """Return for how many ns more one may wait for the next row, when `rows` are there and `waited_ns` have gone by."""
    return patience * (costs.fixed_ns + waited_ns) / rows


def _play(
    costs: CostModel, begin_ns: int, rows: int, arrivals: Sequence[tuple[int, int]], most: int, patience: float
) -> tuple[int, float]:
    """Return the rows that are gathered and the ns that it takes."""
    last_ns = begin_ns
    if patience:
        for at_ns, more in arrivals:
            until_ns = last_ns + longest_wait(costs, rows, last_ns - begin_ns, patience)
            if at_ns > until_ns:
                return rows, until_ns - begin_ns
            if rows + more > most:
                return rows, at_ns - begin_ns
            rows, last_ns = rows + more, at_ns
        if rows < most:
            last_ns += int(longest_wait(costs, rows, last_ns - begin_ns, patience))
    return rows, last_ns - begin_ns
