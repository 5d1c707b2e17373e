"""Sampling of traced requests."""

from __future__ import annotations

from tritonpy_types.trace import TraceLevel


class TraceRule:
    """The sampling rule for one state of the settings of a model or of the server.

    Changed settings create a new rule. It is not thread-safe. The thread that writes traces owns
    `taken` and `replaced`.
    """

    def __init__(
        self, level: TraceLevel, rate: int, count: int, log_frequency: int, missing_setting: str
    ) -> None:
        """`missing_setting` names a setting that the mode requires, empty if it has all."""
        self.level = level
        self.rate = rate
        self.count = count  # remaining traces, -1 for no limit
        self.log_frequency = log_frequency
        self.missing_setting = missing_setting
        self.chosen = 0
        self.taken = 0
        self.replaced = False
        self._seen = 0
        self._counted = count >= 0

    @property
    def problem(self) -> str:
        """The reason why nothing is traced, in Triton's words; empty if requests are traced."""
        if not self.level:
            return "tracing is disabled"
        if not self.rate:
            return "sample rate must be non-zero"
        return self.missing_setting

    @property
    def complete(self) -> bool:
        """Whether all requested traces are taken."""
        return self._counted and self.count == 0 and self.taken >= self.chosen

    def sample(self, continues: bool) -> bool:
        """Return whether to trace the next request.

        A request that continues a client's trace is traced if the level is not OFF. A rate of 0
        traces only those.
        """
        forced = continues and bool(self.level)
        hit = self.rate != 0 and not self.problem and self.count != 0 and self._is_sampled()
        if hit and self.count > 0:
            self.count -= 1
        if hit or forced:
            self.chosen += 1
        return hit or forced

    def _is_sampled(self) -> bool:
        self._seen += 1
        return self._seen % self.rate == 0
