"""What clients and metrics are told of the memory budget and of lazy models."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from tritonpy.custom_metrics.kind import MetricKind
from tritonpy.custom_metrics.snapshot import FamilySnapshot, MetricSnapshot
from tritonpy.repository.budget.sizes import ALL, Sizes, held_in

if TYPE_CHECKING:
    from tritonpy.repository.budget.eviction import Resident
    from tritonpy.repository.budget.memory_budget import MemoryBudget
    from tritonpy.repository.lazy.cold_model import ColdModel
    from tritonpy.repository.lazy.lazy_loading import LazyLoading

EVERYTHING = "all"
"""How all places together are called where they are named."""

_COUNTERS = {
    "nv_lazy_hits": "Requests of lazy models that found their model loaded",
    "nv_lazy_misses": "Requests of lazy models that waited until their model was loaded",
    "nv_lazy_refusals": "Requests of lazy models that were told to come again",
    "nv_lazy_loads": "Loads of models for requests",
    "nv_lazy_load_failures": "Loads of models for requests that failed",
}


class MemoryReport:
    """Of the lazy models of a server, and of its budget where it has one."""

    def __init__(self, lazy: LazyLoading, budget: MemoryBudget | None) -> None:
        self._lazy = lazy
        self._budget = budget

    def counts(self) -> dict[str, int]:
        """Return everything that is counted, by the names of the metrics."""
        tally = self._lazy.cold.tally
        values = (tally.hits(self._lazy.loaded()), tally.misses, tally.refused, tally.loads, tally.failures)
        return dict(zip(_COUNTERS, values, strict=True))

    def plain(self) -> dict[str, Any]:
        """Return the state as plain JSON; sizes are in bytes by place."""
        tally = self._lazy.cold.tally
        said: dict[str, Any] = {name.removeprefix("nv_lazy_"): value for name, value in self.counts().items()}
        said |= {"evictions": tally.evictions.total(), "waiting_requests": tally.waiting}
        residents: dict[str, Resident] = {}
        if self._budget is not None:
            ledger = self._budget.room.ledger
            residents = {resident.key: resident for resident in self._budget.room.residents()}
            said |= {
                "budget": _by_name(ledger.limits.by_place()),
                "held": _by_name({ALL: held_in(ledger.used(), ALL), **ledger.used()}),
                "highest": _by_name(ledger.highest),
                "waiting_loads": self._budget.room.waiting,
            }
        cold = {model.key: model for model in self._lazy.cold.all()}
        said["models"] = [self._model(key, cold.get(key), residents.get(key)) for key in sorted({*cold, *residents})]
        return said

    def families(self) -> Sequence[FamilySnapshot]:
        """Return the same as metrics."""
        return [*self._budget_families(), *self._lazy_families()]

    def _model(self, key: str, cold: ColdModel | None, resident: Resident | None) -> dict[str, Any]:
        said: dict[str, Any] = {"name": key, "state": self._lazy.state(key).value, "lazy": cold is not None}
        if resident is not None:
            said |= {"held": dict(resident.sizes), "idle": resident.idle, "last_use": int(resident.last_use)}
        if cold is not None:
            said |= {"pinned": cold.pinned, "waiting_requests": len(cold.waiting)}
            said |= {"evictions": self._lazy.cold.tally.evictions[key]}
            reason = cold.against or cold.reason
            said |= {"reason": reason} if reason else {}
        return said

    def _budget_families(self) -> Iterator[FamilySnapshot]:
        if self._budget is None:
            return
        ledger = self._budget.room.ledger
        bounds = ledger.limits.by_place()
        used = ledger.used()
        yield _by_device("nv_memory_budget_bytes", "Memory that all models together may hold, in bytes", bounds)
        held = {place: held_in(used, place) for place in {ALL: 0, **bounds, **used}}
        yield _by_device("nv_memory_budget_used_bytes", "Memory that models hold, or are about to, in bytes", held)
        text = "Loads that wait for room in the memory budget"
        yield _single("nv_memory_budget_waiting_loads", text, MetricKind.GAUGE, self._budget.room.waiting)

    def _lazy_families(self) -> Iterator[FamilySnapshot]:
        tally = self._lazy.cold.tally
        for name, value in self.counts().items():
            yield _single(name, _COUNTERS[name], MetricKind.COUNTER, value)
        text = "Lazy models that were unloaded to make room"
        yield _single("nv_lazy_evictions", text, MetricKind.COUNTER, tally.evictions.total())
        text = "Requests that wait until their model is loaded"
        yield _single("nv_lazy_waiting_requests", text, MetricKind.GAUGE, tally.waiting)


def _by_name(sizes: Sizes) -> dict[str, int]:
    return {place or EVERYTHING: size for place, size in sizes.items()}


def _by_device(name: str, text: str, sizes: Mapping[str, int]) -> FamilySnapshot:
    metrics = [MetricSnapshot({"device": device}, size) for device, size in _by_name(sizes).items()]
    return FamilySnapshot(name, text, MetricKind.GAUGE, metrics)


def _single(name: str, text: str, kind: MetricKind, value: int) -> FamilySnapshot:
    return FamilySnapshot(name, text, kind, [MetricSnapshot({}, value)])
