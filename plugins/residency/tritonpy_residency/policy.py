"""The residency policy: loads lazy models on request, and evicts the least recently used ones."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Mapping
from contextlib import AbstractContextManager, nullcontext

from tritonpy.frontend import Operation, OperationHandler
from tritonpy.repository import LoadedModel, ResidencyContext, is_ensemble
from tritonpy_residency.capacity import MemoryCapacity
from tritonpy_residency.capacity_errors import DemandExceeded
from tritonpy_residency.demand import DemandEstimator
from tritonpy_residency.lazy_model import LazyModel
from tritonpy_residency.lazy_models import LazyModels
from tritonpy_residency.memory_budget import ModelMemoryBudget
from tritonpy_residency.report import MEMORY, BudgetReport
from tritonpy_residency.reservations import MemoryReservations
from tritonpy_residency.resident_models import ResidentModels
from tritonpy_residency.sizes import MemoryLimits

log = logging.getLogger("tritonpy.repository")


class LruPolicy(LazyModels):
    """Manages all lazy models of a server, and its memory budget if memory is limited."""

    memory: ModelMemoryBudget | None = None

    def __init__(self, context: ResidencyContext) -> None:
        super().__init__(context)
        self._context = context
        self._ensemble_lock = threading.Lock()
        if context.settings.limited:
            self.memory = self._create_budget()
        self._report = BudgetReport(self, context.table, self.memory)
        context.metrics.add_source(self._report.families)

    def unloaded(self, model: LoadedModel) -> None:
        """Count the requests of an unloaded version."""
        if self.get(model.context.qualified_name) is not None:
            self.counters.record_unload(model)

    def operations(self) -> Mapping[Operation, OperationHandler]:
        """Return the operation for the memory report: GET /v2/memory."""
        return {MEMORY: lambda _call: self._report.as_dict()}

    def close(self) -> None:
        """End the threads, after `stop`."""
        super().close()
        if self.memory is not None:
            self.memory.close()

    def evict(self, key: str) -> bool:
        """Unload an idle lazy model; False if it is in use."""
        models = self._context.table.ready(key)
        if self.get(key) is None or not self._context.unload_if_idle(key):
            return False
        self.counters.evictions[key] += 1
        idle_s = max(time.time() - max(model.last_use_ms for model in models) / 1000, 0)
        log.info("unloading '%s' to free memory, last used %.1f s ago", key, idle_s)
        return True

    def _create_budget(self) -> ModelMemoryBudget:
        log.info(
            "the memory budget uses the sizes that backends report; for ONNX Runtime on the CPU, "
            "that is the size of the model's files: "
            "the process may use twice as much. Reserve memory for that, "
            "or set the parameter memory_bytes of a model"
        )
        context = self._context
        reservations = MemoryReservations(MemoryLimits.of(context.settings))
        residents = ResidentModels(context.table, context.ensembles, reservations, self.get)
        capacity = MemoryCapacity(reservations, residents, self.evict, context.settings.retry_s)
        return ModelMemoryBudget(capacity, DemandEstimator(context.placement))

    def _load(self, model: LazyModel) -> None:
        """Load a model for waiting requests. Raises `InsufficientCapacity` if memory is missing."""
        deadline = model.deadline(self.settings.wait_s)
        with self._exclusive(model):
            try:
                self._context.load(model.key, model.name, model.override, deadline)
            except DemandExceeded:  # its size is now known, so wait for that
                self._context.load(model.key, model.name, model.override, deadline)

    def _exclusive(self, model: LazyModel) -> AbstractContextManager[object]:
        """Return a lock for ensembles with limited memory.

        Ensembles reserve memory in several steps. Two concurrent loads could each wait for memory
        that the other one holds.
        """
        config = model.listing.config
        ensemble = config is not None and is_ensemble(config)
        return self._ensemble_lock if ensemble and self.settings.limited else nullcontext()
