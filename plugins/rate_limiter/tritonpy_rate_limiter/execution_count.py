"""The rate limiter for `rate_limit.mode: execution_count`."""

from __future__ import annotations

import itertools
import logging
import threading
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from tritonpy.scheduling import RateLimiter
from tritonpy_rate_limiter.grant_order import Contender, grantable, spent_on_entry
from tritonpy_rate_limiter.resources import (
    Demand,
    Resource,
    demands_of,
    given_resources,
    resource_map,
    totals,
)

if TYPE_CHECKING:
    from tritonpy_protos.model_config_pb2 import ModelInstanceGroup

log = logging.getLogger("tritonpy.limiter")

Granted = Callable[[], object]


@dataclass(frozen=True, slots=True)
class _Registration:
    demands: tuple[Demand, ...]
    contender: Contender


class ExecutionCountLimiter(RateLimiter):
    """Lets instances execute while their resources are free, in the order of `grant_order`.

    `resources` gives the available count of each resource (see `given_resources`). Without it, the
    count is the largest demand of any instance. Totals follow the instances as they are added and
    removed.
    """

    def __init__(self, resources: Mapping[str, int] | None = None) -> None:
        super().__init__(resources)
        self._given = given_resources(self.resources)
        self._lock = threading.Lock()
        self._registrations: dict[str, _Registration] = {}
        self._waiting: dict[str, Granted] = {}
        self._running: set[str] = set()
        self._totals: dict[Resource, int] = {}
        self._arrivals = itertools.count(1)

    def register(self, instance: str, device: int, group: ModelInstanceGroup) -> bool:
        demands = demands_of(group, device)
        if not demands:
            return False
        with self._lock:
            everybody = [
                demand
                for registration in self._registrations.values()
                for demand in registration.demands
            ]
            self._totals = totals([*everybody, *demands], self._given)
            self._log_totals(demands)
            contender = Contender(
                {demand.resource: demand.count for demand in demands},
                max(group.rate_limiter.priority, 1),
            )
            self._registrations[instance] = _Registration(demands, contender)
            grants = self._grant()  # the total of a resource may have grown
        _notify(grants)
        return True

    def unregister(self, instance: str) -> None:
        with self._lock:
            if self._registrations.pop(instance, None) is None:
                return
            self._waiting.pop(instance, None)
            self._running.discard(instance)
            self._totals = totals(
                [
                    demand
                    for registration in self._registrations.values()
                    for demand in registration.demands
                ],
                self._given,
            )
            self._log_totals()
            grants = self._grant()
        _notify(grants)

    def acquire(self, instance: str, granted: Granted) -> bool:
        with self._lock:
            contender = self._registrations[instance].contender
            contender.spent = spent_on_entry(
                contender, self._contenders(self._waiting), self._contenders(self._running)
            )
            grants = self._queue(instance, granted)
        return _notify_others(instance, grants)

    def reacquire(self, instance: str, granted: Granted) -> bool:
        with self._lock:
            self._running.discard(instance)
            grants = self._queue(instance, granted)
        return _notify_others(instance, grants)

    def release(self, instance: str) -> None:
        with self._lock:
            # An unregistered instance has already released its resources.
            self._running.discard(instance)
            grants = self._grant()
        _notify(grants)

    def _contenders(self, names: Iterable[str]) -> list[Contender]:
        return [self._registrations[name].contender for name in names]

    def _queue(self, instance: str, granted: Granted) -> dict[str, Granted]:
        self._registrations[instance].contender.arrival = next(self._arrivals)
        self._waiting[instance] = granted
        return self._grant()

    def _grant(self) -> dict[str, Granted]:
        """Grant free resources; return the callbacks of the granted instances."""
        if not self._waiting:
            return {}
        names = {id(self._registrations[name].contender): name for name in self._waiting}
        chosen = grantable(self._contenders(self._waiting), self._free())
        grants: dict[str, Granted] = {}
        for contender in chosen:
            name = names[id(contender)]
            contender.spent += contender.priority
            self._running.add(name)
            grants[name] = self._waiting.pop(name)
        return grants

    def _log_totals(self, more: Iterable[Demand] = ()) -> None:
        """Log the total of each resource, as Triton does at verbose level 1."""
        if log.isEnabledFor(logging.DEBUG):
            demands = itertools.chain(
                more, *(registration.demands for registration in self._registrations.values())
            )
            log.debug(
                "%s",
                resource_map(
                    self._totals, {demand.resource: demand.spelling for demand in demands}
                ),
            )

    def _free(self) -> dict[Resource, int]:
        free = dict(self._totals)
        for name in self._running:
            for resource, count in self._registrations[name].contender.demands.items():
                free[resource] -= count
        return free


def _notify_others(instance: str, grants: dict[str, Granted]) -> bool:
    """Notify all granted instances except `instance`; return whether it was granted."""
    here = grants.pop(instance, None) is not None
    _notify(grants)
    return here


def _notify(grants: Mapping[str, Granted]) -> None:
    for granted in grants.values():
        granted()
