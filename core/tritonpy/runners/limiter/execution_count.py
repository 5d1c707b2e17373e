"""The limiter of `rate_limit.mode: execution_count`."""

from __future__ import annotations

import itertools
import logging
import threading
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from tritonpy.api.rate_limiter import RateLimiter
from tritonpy.runners.limiter.resources import Need, Resource, given_resources, needs_of, resource_map, totals
from tritonpy.runners.limiter.turns import Contender, caught_up, next_turns

if TYPE_CHECKING:
    from tritonpy_protos.model_config_pb2 import ModelInstanceGroup

log = logging.getLogger("tritonpy.limiter")

Granted = Callable[[], object]


@dataclass(frozen=True, slots=True)
class _Seat:
    needs: tuple[Need, ...]
    contender: Contender


class ExecutionCountLimiter(RateLimiter):
    """Lets instances execute while the resources of their groups are free, in the order of `turns`.

    `counts` says how much there is of each resource (see `given_resources`); without it there is as much as the neediest instance needs. What
    there is follows the instances as they come and go.
    """

    def __init__(self, counts: Mapping[str, int] | None = None) -> None:
        self._given = given_resources(counts or {})
        self._lock = threading.Lock()
        self._seats: dict[str, _Seat] = {}
        self._waiting: dict[str, Granted] = {}
        self._running: set[str] = set()
        self._totals: dict[Resource, int] = {}
        self._arrivals = itertools.count(1)

    def register(self, instance: str, device: int, group: ModelInstanceGroup) -> bool:
        needs = needs_of(group, device)
        if not needs:
            return False
        with self._lock:
            everybody = [need for seat in self._seats.values() for need in seat.needs]
            self._totals = totals([*everybody, *needs], self._given)
            self._log_totals(needs)
            contender = Contender({need.resource: need.count for need in needs}, max(group.rate_limiter.priority, 1))
            self._seats[instance] = _Seat(needs, contender)
            grants = self._grant()  # there may be more of something now
        _tell(grants)
        return True

    def unregister(self, instance: str) -> None:
        with self._lock:
            if self._seats.pop(instance, None) is None:
                return
            self._waiting.pop(instance, None)
            self._running.discard(instance)
            self._totals = totals([need for seat in self._seats.values() for need in seat.needs], self._given)
            self._log_totals()
            grants = self._grant()
        _tell(grants)

    def acquire(self, instance: str, granted: Granted) -> bool:
        with self._lock:
            contender = self._seats[instance].contender
            contender.spent = caught_up(contender, self._contenders(self._waiting), self._contenders(self._running))
            grants = self._queue(instance, granted)
        return _tell_others(instance, grants)

    def again(self, instance: str, granted: Granted) -> bool:
        with self._lock:
            self._running.discard(instance)
            grants = self._queue(instance, granted)
        return _tell_others(instance, grants)

    def release(self, instance: str) -> None:
        with self._lock:
            self._running.discard(instance)  # who was forgotten meanwhile has given it back already
            grants = self._grant()
        _tell(grants)

    def _contenders(self, names: Iterable[str]) -> list[Contender]:
        return [self._seats[name].contender for name in names]

    def _queue(self, instance: str, granted: Granted) -> dict[str, Granted]:
        self._seats[instance].contender.arrival = next(self._arrivals)
        self._waiting[instance] = granted
        return self._grant()

    def _grant(self) -> dict[str, Granted]:
        """Give out what is free; return whom to tell."""
        if not self._waiting:
            return {}
        names = {id(self._seats[name].contender): name for name in self._waiting}
        chosen = next_turns(self._contenders(self._waiting), self._free())
        grants: dict[str, Granted] = {}
        for contender in chosen:
            name = names[id(contender)]
            contender.spent += contender.priority
            self._running.add(name)
            grants[name] = self._waiting.pop(name)
        return grants

    def _log_totals(self, more: Iterable[Need] = ()) -> None:
        """Log how much there is of each resource, as Triton does at verbose level 1."""
        if log.isEnabledFor(logging.DEBUG):
            needs = itertools.chain(more, *(seat.needs for seat in self._seats.values()))
            log.debug("%s", resource_map(self._totals, {need.resource: need.spelling for need in needs}))

    def _free(self) -> dict[Resource, int]:
        free = dict(self._totals)
        for name in self._running:
            for resource, count in self._seats[name].contender.needs.items():
                free[resource] -= count
        return free


def _tell_others(instance: str, grants: dict[str, Granted]) -> bool:
    """Tell everybody but `instance`, who hears it from the returned value."""
    here = grants.pop(instance, None) is not None
    _tell(grants)
    return here


def _tell(grants: Mapping[str, Granted]) -> None:
    for granted in grants.values():
        granted()
