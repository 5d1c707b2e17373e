"""The memory budget as loads use it."""

from __future__ import annotations

import logging
from collections.abc import Collection
from functools import partial

from tritonpy.model.loaded_model import LoadedModel
from tritonpy.repository.budget.capacity import MemoryCapacity
from tritonpy.repository.budget.demand import DemandEstimator
from tritonpy.repository.budget.load_deadline import LoadDeadline
from tritonpy.repository.budget.memory_monitor import MemoryMonitor
from tritonpy.repository.budget.sizes import format_sizes
from tritonpy.repository.prepared_model import PreparedModel

log = logging.getLogger("tritonpy.repository")


class MemoryBudget:
    """Reserves memory before each load, and corrects the reservation after it."""

    def __init__(self, capacity: MemoryCapacity, demands: DemandEstimator) -> None:
        self.capacity = capacity
        self._demands = demands
        self._monitor = MemoryMonitor(capacity)

    def close(self) -> None:
        """Stop monitoring."""
        self._monitor.stop()

    def reserve(self, prepared: PreparedModel, deadline: LoadDeadline | None) -> None:
        """Reserve memory for `prepared`, waiting until `deadline`.

        Raises `InsufficientCapacity`, or `InvalidArgument` for an invalid declaration of memory.
        """
        demand = self._demands.demand(prepared)
        self._monitor.start()
        prepared.reservation = self.capacity.reserve(prepared.key, demand.sizes, deadline)
        total = self.capacity.occupancy()
        log.info(
            "'%s' reserves %s (%s); %s reserved in total",
            prepared.key,
            format_sizes(demand.sizes),
            demand.source,
            total,
        )

    def settle(self, prepared: PreparedModel, models: Collection[LoadedModel]) -> None:
        """Adjust the reservation to the size of the loaded `models`.

        Raises `DemandExceeded` if that does not fit.
        """
        reservation, demand = prepared.reservation, self._demands.demand(prepared)
        if reservation is None:
            return
        sizes = self._demands.record_measured(prepared.key, demand, models)
        self.capacity.adjust(reservation, sizes)
        reservation.measure = partial(self._demands.record_measured, prepared.key, demand, list(models))
        if sizes != demand.sizes:
            total = self.capacity.occupancy()
            log.info("'%s' uses %s; %s reserved in total", prepared.key, format_sizes(sizes), total)

    def keep_versions(self, prepared: PreparedModel, models: Collection[LoadedModel]) -> None:
        """Record that only `models` of the versions of `prepared` keep serving.

        Versions that are being unloaded hold memory until they are gone.
        """
        reservation = prepared.reservation
        if reservation is None or not models:
            return
        reservation.measure_after_unload = partial(
            self._demands.record_measured, prepared.key, self._demands.demand(prepared), list(models)
        )
        reservation.refresh()

    def grow(self, prepared: PreparedModel, models: Collection[LoadedModel]) -> None:
        """Adjust the reservation after serving models got more instances.

        Raises `DemandExceeded` if that does not fit; the previous reservation is then restored.
        """
        reservation = prepared.reservation
        if reservation is None:
            return
        before = reservation.sizes
        for model in models:
            if model.runner is not None:
                model.runner.measure_memory()
        try:
            self.capacity.adjust(reservation, self._demands.measured(self._demands.demand(prepared), models))
        except BaseException:
            self.capacity.reservations.change(reservation, before)
            raise
