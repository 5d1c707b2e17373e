"""The report on the memory budget and on lazy models, for clients and metrics."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from tritonpy.auth import Verb
from tritonpy.frontend import Operation
from tritonpy.metrics import FamilySnapshot, MetricKind, MetricSnapshot
from tritonpy.repository import State
from tritonpy_residency.sizes import ALL, Sizes, bytes_in

if TYPE_CHECKING:
    from tritonpy.repository import ModelTable
    from tritonpy_residency.eviction import ResidentModel
    from tritonpy_residency.lazy_model import LazyModel
    from tritonpy_residency.lazy_models import LazyModels
    from tritonpy_residency.memory_budget import ModelMemoryBudget

ALL_DEVICES = "all"
"""The name of the sum over all devices."""

MEMORY = Operation(
    "memory",
    "GET",
    "memory",
    "The memory budget, its use by each model, and the counters of lazy models.",
    Verb.READ,
)

_STATES_BY_RANK = (State.READY, State.LOADING, State.UNLOADING)
_COUNTERS = {
    "nv_lazy_hits": "Requests of lazy models that found their model loaded",
    "nv_lazy_misses": "Requests of lazy models that waited until their model was loaded",
    "nv_lazy_refusals": "Requests of lazy models that were asked to retry",
    "nv_lazy_loads": "Loads of models for requests",
    "nv_lazy_load_failures": "Loads of models for requests that failed",
}


class BudgetReport:
    """The report on the lazy models of a server, and on its budget if it has one."""

    def __init__(
        self, lazy: LazyModels, table: ModelTable, budget: ModelMemoryBudget | None
    ) -> None:
        self._lazy = lazy
        self._table = table
        self._budget = budget

    def counts(self) -> dict[str, int]:
        """Return all counters by metric name."""
        counters = self._lazy.counters
        values = (
            counters.hits(
                [loaded for model in self._lazy.all() for loaded in self._table.ready(model.key)]
            ),
            counters.misses,
            counters.refused,
            counters.loads,
            counters.failures,
        )
        return dict(zip(_COUNTERS, values, strict=True))

    def as_dict(self) -> dict[str, Any]:
        """Return the state as plain data; sizes are in bytes by device."""
        counters = self._lazy.counters
        report: dict[str, Any] = {
            name.removeprefix("nv_lazy_"): value for name, value in self.counts().items()
        }
        report |= {"evictions": counters.evictions.total(), "waiting_requests": counters.waiting}
        residents: dict[str, ResidentModel] = {}
        if self._budget is not None:
            reservations = self._budget.capacity.reservations
            residents = {resident.key: resident for resident in self._budget.capacity.residents()}
            report |= {
                "budget": _by_name(reservations.limits.by_device()),
                "held": _by_name({ALL: bytes_in(reservations.used(), ALL), **reservations.used()}),
                "highest": _by_name(reservations.highest),
                "waiting_loads": self._budget.capacity.waiting,
            }
        lazy_model = {model.key: model for model in self._lazy.all()}
        report["models"] = [
            self._model(key, lazy_model.get(key), residents.get(key))
            for key in sorted({*lazy_model, *residents})
        ]
        return report

    def families(self) -> Sequence[FamilySnapshot]:
        """Return the state as metrics."""
        return [*self._budget_families(), *self._lazy_families()]

    def _model(
        self, key: str, lazy_model: LazyModel | None, resident: ResidentModel | None
    ) -> dict[str, Any]:
        report: dict[str, Any] = {
            "name": key,
            "state": self._state(key).value,
            "lazy": lazy_model is not None,
        }
        if resident is not None:
            report |= {
                "held": dict(resident.sizes),
                "idle": resident.idle,
                "last_use": int(resident.last_use),
            }
        if lazy_model is not None:
            report |= {"pinned": lazy_model.pinned, "waiting_requests": len(lazy_model.waiting)}
            report |= {"evictions": self._lazy.counters.evictions[key]}
            reason = lazy_model.blocked_reason or lazy_model.reason
            report |= {"reason": reason} if reason else {}
        return report

    def _state(self, key: str) -> State:
        """Return the state of a model: the best one of its versions."""
        states = {State(line.state) for line in self._table.index(key) if line.state}
        return next((state for state in _STATES_BY_RANK if state in states), State.UNAVAILABLE)

    def _budget_families(self) -> Iterator[FamilySnapshot]:
        if self._budget is None:
            return
        reservations = self._budget.capacity.reservations
        bounds = reservations.limits.by_device()
        used = reservations.used()
        yield _by_device(
            "nv_memory_budget_bytes", "Memory that all models together may hold, in bytes", bounds
        )
        held = {device: bytes_in(used, device) for device in {ALL: 0, **bounds, **used}}
        yield _by_device(
            "nv_memory_budget_used_bytes",
            "Memory that models hold, or are about to, in bytes",
            held,
        )
        text = "Loads that wait for memory in the memory budget"
        yield _single(
            "nv_memory_budget_waiting_loads", text, MetricKind.GAUGE, self._budget.capacity.waiting
        )

    def _lazy_families(self) -> Iterator[FamilySnapshot]:
        counters = self._lazy.counters
        for name, value in self.counts().items():
            yield _single(name, _COUNTERS[name], MetricKind.COUNTER, value)
        text = "Lazy models that were unloaded to free memory"
        yield _single("nv_lazy_evictions", text, MetricKind.COUNTER, counters.evictions.total())
        text = "Requests that wait until their model is loaded"
        yield _single("nv_lazy_waiting_requests", text, MetricKind.GAUGE, counters.waiting)


def _by_name(sizes: Sizes) -> dict[str, int]:
    return {device or ALL_DEVICES: size for device, size in sizes.items()}


def _by_device(name: str, text: str, sizes: Mapping[str, int]) -> FamilySnapshot:
    metrics = [MetricSnapshot({"device": device}, size) for device, size in _by_name(sizes).items()]
    return FamilySnapshot(name, text, MetricKind.GAUGE, metrics)


def _single(name: str, text: str, kind: MetricKind, value: int) -> FamilySnapshot:
    return FamilySnapshot(name, text, kind, [MetricSnapshot({}, value)])
