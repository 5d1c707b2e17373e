"""The order in which waiting instances get their resources, as pure functions."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from tritonpy_rate_limiter.resources import Resource

_PREPARATIONS = 2
"""Triton counts initialization and warm-up of an instance as executions, so an instance of

priority 2 starts behind one of priority 1.
"""


@dataclass(slots=True)
class Contender:
    """An instance that needs resources.

    `spent` is the sum of the priorities of its executions, including the current one. The instance
    that spent least is next. An instance of priority 2 therefore executes half as often as one of
    priority 1. `arrival` numbers the waiting instances.
    """

    demands: Mapping[Resource, int]
    priority: int
    spent: int = 0
    arrival: int = 0

    @property
    def order(self) -> tuple[int, int]:
        """The sort key; the lowest is next."""
        return self.spent + _PREPARATIONS * self.priority, self.arrival


def grantable(waiting: Iterable[Contender], free: Mapping[Resource, int]) -> list[Contender]:
    """Return the waiting instances that may execute now, in order.

    The demand of an instance that cannot run yet is reserved. Later instances cannot take it, so
    the instance waits only for running ones. An instance with other demands may pass it.
    """
    left, chosen = dict(free), []
    for contender in sorted(waiting, key=lambda each: each.order):
        if all(left[resource] >= count for resource, count in contender.demands.items()):
            chosen.append(contender)
        for resource, count in contender.demands.items():
            left[resource] -= count
    return chosen


def spent_on_entry(
    newcomer: Contender, waiting: Iterable[Contender], running: Iterable[Contender]
) -> int:
    """Return the initial `spent` of `newcomer` when it begins to compete.

    It is at least the lowest `spent` of its rivals, which demand the same resources. A waiting
    rival counts with its current value, a running one with its value before this execution.
    Otherwise an instance could block the others after a long time without work.
    """
    spent = [
        *((each, each.spent) for each in waiting),
        *((each, each.spent - each.priority) for each in running),
    ]
    rivals = [
        value for each, value in spent if not newcomer.demands.keys().isdisjoint(each.demands)
    ]
    return max(newcomer.spent, min(rivals, default=newcomer.spent))
