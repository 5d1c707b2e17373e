"""Streaming quantile estimate that stores no samples."""

from __future__ import annotations


class Quantile:
    """Estimates the quantile `share` of a stream. `value` changes by at most `step` per sample."""

    __slots__ = ("_down", "_up", "value")

    def __init__(self, share: float, step: float, value: float) -> None:
        self.value = value
        self._up = step * share
        self._down = step * (1 - share)

    def learn(self, sample: float) -> None:
        """Update the estimate with one sample."""
        if sample > self.value:
            self.value = min(sample, self.value + self._up)
        else:
            self.value = max(sample, self.value - self._down)
