"""A quantile of what comes, followed without keeping any of it."""

from __future__ import annotations


class Quantile:
    """`value` goes up where more than the share `share` of what comes is below it should be, by at most `step` at a time, and down otherwise."""

    __slots__ = ("_down", "_up", "value")

    def __init__(self, share: float, step: float, value: float) -> None:
        self.value = value
        self._up = step * share
        self._down = step * (1 - share)

    def learn(self, seen: float) -> None:
        """Take note of one more."""
        if seen > self.value:
            self.value = min(seen, self.value + self._up)
        else:
            self.value = max(seen, self.value - self._down)
