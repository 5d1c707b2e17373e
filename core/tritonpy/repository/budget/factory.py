"""Creation of the memory budget of a server."""

from __future__ import annotations

import logging

from tritonpy.config.server.sections import MemorySettings
from tritonpy.repository.budget.capacity import MemoryCapacity
from tritonpy.repository.budget.demand import DemandEstimator
from tritonpy.repository.budget.memory_budget import MemoryBudget
from tritonpy.repository.budget.reservations import MemoryReservations
from tritonpy.repository.budget.resident_models import ResidentModels
from tritonpy.repository.budget.sizes import MemoryLimits
from tritonpy.repository.ensemble_reconciler import EnsembleReconciler
from tritonpy.repository.lazy.lazy_model_manager import LazyModelManager
from tritonpy.repository.model_loader import ModelLoader
from tritonpy.repository.model_table import ModelTable

log = logging.getLogger("tritonpy.repository")


def create_memory_budget(
    table: ModelTable,
    loader: ModelLoader,
    ensembles: EnsembleReconciler,
    lazy: LazyModelManager,
    settings: MemorySettings,
) -> MemoryBudget:
    """Return the budget of `settings`, which evicts lazy models if necessary."""
    log.info(
        "the memory budget uses the sizes that backends report; for ONNX Runtime on the CPU, that is the size of the model's files: "
        "the process may use twice as much. Reserve memory for that, or set the parameter memory_bytes of a model"
    )
    reservations = MemoryReservations(MemoryLimits.of(settings))
    residents = ResidentModels(table, ensembles, reservations, lazy.models.get)
    return MemoryBudget(MemoryCapacity(reservations, residents, lazy.evict, settings.retry_s), DemandEstimator(loader))
