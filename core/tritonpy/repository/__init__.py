"""Model repositories: finding, loading, reloading and unloading models, and their states.

Residency policies import the names below from here. The modules of the package import each other
directly.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tritonpy.lazy_names import lazy_names

if TYPE_CHECKING:
    from tritonpy.clock import epoch_ms
    from tritonpy.config.server.sections import HOST, MemorySettings
    from tritonpy.model.loaded_model import LoadedModel
    from tritonpy.model.model_closed import ModelClosed
    from tritonpy.repository.dependencies import is_ensemble
    from tritonpy.repository.ensemble_reconciler import EnsembleReconciler
    from tritonpy.repository.memory_budget import InsufficientCapacity, LoadDeadline, MemoryBudget, MemoryReservation
    from tritonpy.repository.model_loader import ModelLoader
    from tritonpy.repository.model_table import LazyListing, ModelTable, State
    from tritonpy.repository.prepared_model import PreparedModel
    from tritonpy.runners.deadlines import Deadlines
    from tritonpy.runners.timer import Timer
    from tritonpy.types.request import UNOWNED

__all__ = [
    "HOST",
    "UNOWNED",
    "Deadlines",
    "EnsembleReconciler",
    "InsufficientCapacity",
    "LazyListing",
    "LoadDeadline",
    "LoadedModel",
    "MemoryBudget",
    "MemoryReservation",
    "MemorySettings",
    "ModelClosed",
    "ModelLoader",
    "ModelTable",
    "PreparedModel",
    "State",
    "Timer",
    "epoch_ms",
    "is_ensemble",
]

__getattr__ = lazy_names(
    __name__,
    {
        "tritonpy.clock": ("epoch_ms",),
        "tritonpy.config.server.sections": ("HOST", "MemorySettings"),
        "tritonpy.model.loaded_model": ("LoadedModel",),
        "tritonpy.model.model_closed": ("ModelClosed",),
        "tritonpy.repository.dependencies": ("is_ensemble",),
        "tritonpy.repository.ensemble_reconciler": ("EnsembleReconciler",),
        "tritonpy.repository.memory_budget": (
            "InsufficientCapacity",
            "LoadDeadline",
            "MemoryBudget",
            "MemoryReservation",
        ),
        "tritonpy.repository.model_loader": ("ModelLoader",),
        "tritonpy.repository.model_table": ("LazyListing", "ModelTable", "State"),
        "tritonpy.repository.prepared_model": ("PreparedModel",),
        "tritonpy.runners.deadlines": ("Deadlines",),
        "tritonpy.runners.timer": ("Timer",),
        "tritonpy.types.request": ("UNOWNED",),
    },
)
