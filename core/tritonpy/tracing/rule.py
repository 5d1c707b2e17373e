"""Which requests are traced."""

from __future__ import annotations

from tritonpy.types.trace import TraceLevel


class TraceRule:
    """One state of the settings of a model or of the server, and what it chose so far. A change of the settings makes a new rule.

    Not for several threads at once; `taken` and `replaced` belong to the thread that takes the traces.
    """

    def __init__(self, level: TraceLevel, rate: int, count: int, log_frequency: int, lack: str) -> None:
        """`lack` is what the mode misses to trace anything, empty where it misses nothing."""
        self.level = level
        self.rate = rate
        self.count = count  # traces still to come, -1 without a limit
        self.log_frequency = log_frequency
        self.lack = lack
        self.chosen = 0
        self.taken = 0
        self.replaced = False
        self._seen = 0
        self._counted = count >= 0

    @property
    def problem(self) -> str:
        """Why nothing is traced, in Triton's words; empty where something is."""
        if not self.level:
            return "tracing is disabled"
        if not self.rate:
            return "sample rate must be non-zero"
        return self.lack

    @property
    def complete(self) -> bool:
        """As many traces as were asked for are taken."""
        return self._counted and self.count == 0 and self.taken >= self.chosen

    def sample(self, continues: bool) -> bool:
        """Say whether to trace the request that comes now; one that continues a client's trace is, as long as there is a level.

        A rate of 0 traces those alone.
        """
        forced = continues and bool(self.level)
        hit = self.rate != 0 and not self.problem and self.count != 0 and self._is_due()
        if hit and self.count > 0:
            self.count -= 1
        if hit or forced:
            self.chosen += 1
        return hit or forced

    def _is_due(self) -> bool:
        self._seen += 1
        return self._seen % self.rate == 0
