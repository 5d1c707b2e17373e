"""Whose turn it is. Pure: no clock, thread or lock."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from tritonpy.runners.limiter.resources import Resource

_PREPARATIONS = 2
"""Triton counts the initialization and the warm-up of an instance as executions, so that one of priority 2 starts behind one of priority 1."""


@dataclass(slots=True)
class Contender:
    """One instance that needs resources.

    `spent` is the sum of the priorities of its executions, the current one included: who spent least is next, so that an
    instance of priority 2 gets half the turns of one of priority 1. `arrival` numbers those that wait.
    """

    needs: Mapping[Resource, int]
    priority: int
    spent: int = 0
    arrival: int = 0

    @property
    def order(self) -> tuple[int, int]:
        """The lowest is next."""
        return self.spent + _PREPARATIONS * self.priority, self.arrival


def next_turns(waiting: Iterable[Contender], free: Mapping[Resource, int]) -> list[Contender]:
    """Return those of `waiting` that may execute now, in their order.

    Who cannot yet has what it needs kept back: nobody behind it takes that, so that it waits for those that execute and for nobody else.
    Who needs none of it goes past.
    """
    left, chosen = dict(free), []
    for contender in sorted(waiting, key=lambda each: each.order):
        if all(left[resource] >= count for resource, count in contender.needs.items()):
            chosen.append(contender)
        for resource, count in contender.needs.items():
            left[resource] -= count
    return chosen


def caught_up(newcomer: Contender, waiting: Iterable[Contender], running: Iterable[Contender]) -> int:
    """Return what `newcomer` has spent as it begins to compete: at least as much as the rival that had spent least when it last began or waits.

    What an instance did not use while it had nothing to do is no credit: it would shut the others out until it had made up for it.
    """
    spent = [*((each, each.spent) for each in waiting), *((each, each.spent - each.priority) for each in running)]
    rivals = [value for each, value in spent if not newcomer.needs.keys().isdisjoint(each.needs)]
    return max(newcomer.spent, min(rivals, default=newcomer.spent))
