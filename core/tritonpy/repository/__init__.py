"""Model repositories and their agents; loading, unloading and residency of models.

Start at `manager`, then `load_change` (one reload) and `model_table` (what serves). The modules
import each other directly, models and runners; plugins import the names below from here.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tritonpy.lazy_names import lazy_names

if TYPE_CHECKING:
    from tritonpy.api.engine import ModelIndex
    from tritonpy.api.load_cancellation import LoadCancellation
    from tritonpy.api.repo_agent import AgentAction, AgentModel, RepoAgent
    from tritonpy.api.repository import (
        ModelChanged,
        ModelListing,
        Repository,
        RepositoryContext,
        named_versions,
    )
    from tritonpy.model.loaded_model import LoadedModel
    from tritonpy.model.model_closed import ModelClosed
    from tritonpy.repository.memory_reservation import (
        InsufficientCapacity,
        LoadDeadline,
        MemoryReservation,
    )
    from tritonpy.repository.model_table import LazyListing, ModelTable, State
    from tritonpy.repository.prepared_model import PreparedModel
    from tritonpy.repository.residency import (
        EnsembleMembers,
        MemoryBudget,
        ModelPlacement,
        ResidencyContext,
        ResidencyPolicy,
    )
    from tritonpy.runners.deadlines import Deadlines
    from tritonpy.runners.timer import Timer
    from tritonpy_config.dependencies import is_ensemble
    from tritonpy_config.private_folders import make_private_folder
    from tritonpy_config.redacted_urls import redact_urls
    from tritonpy_config.server.sections import HOST, MemorySettings
    from tritonpy_types.clock import epoch_ms
    from tritonpy_types.request import UNOWNED

__all__ = [
    "HOST",
    "UNOWNED",
    "AgentAction",
    "AgentModel",
    "Deadlines",
    "EnsembleMembers",
    "InsufficientCapacity",
    "LazyListing",
    "LoadCancellation",
    "LoadDeadline",
    "LoadedModel",
    "MemoryBudget",
    "MemoryReservation",
    "MemorySettings",
    "ModelChanged",
    "ModelClosed",
    "ModelIndex",
    "ModelListing",
    "ModelPlacement",
    "ModelTable",
    "PreparedModel",
    "RepoAgent",
    "Repository",
    "RepositoryContext",
    "ResidencyContext",
    "ResidencyPolicy",
    "State",
    "Timer",
    "epoch_ms",
    "is_ensemble",
    "make_private_folder",
    "named_versions",
    "redact_urls",
]

__getattr__ = lazy_names(
    __name__,
    {
        "tritonpy.api.engine": ("ModelIndex",),
        "tritonpy.api.load_cancellation": ("LoadCancellation",),
        "tritonpy.api.repo_agent": ("AgentAction", "AgentModel", "RepoAgent"),
        "tritonpy.api.repository": (
            "ModelChanged",
            "ModelListing",
            "Repository",
            "RepositoryContext",
            "named_versions",
        ),
        "tritonpy_types.clock": ("epoch_ms",),
        "tritonpy_config.server.sections": ("HOST", "MemorySettings"),
        "tritonpy.model.loaded_model": ("LoadedModel",),
        "tritonpy.model.model_closed": ("ModelClosed",),
        "tritonpy_config.private_folders": ("make_private_folder",),
        "tritonpy_config.redacted_urls": ("redact_urls",),
        "tritonpy_config.dependencies": ("is_ensemble",),
        "tritonpy.repository.memory_reservation": (
            "InsufficientCapacity",
            "LoadDeadline",
            "MemoryReservation",
        ),
        "tritonpy.repository.model_table": ("LazyListing", "ModelTable", "State"),
        "tritonpy.repository.prepared_model": ("PreparedModel",),
        "tritonpy.repository.residency": (
            "EnsembleMembers",
            "MemoryBudget",
            "ModelPlacement",
            "ResidencyContext",
            "ResidencyPolicy",
        ),
        "tritonpy.runners.deadlines": ("Deadlines",),
        "tritonpy.runners.timer": ("Timer",),
        "tritonpy_types.request": ("UNOWNED",),
    },
)
