"""Whether a model's instances run in processes of their own."""

from __future__ import annotations

from tritonpy.api.backend import Backend, ModelContext
from tritonpy.errors import InvalidArgument

PARAMETER = "isolation"


def isolated(model: ModelContext, backend: type[Backend]) -> bool:
    """Return what the model's parameter says, or else what its backend prefers. Raises InvalidArgument for another word."""
    chosen = model.parameters[PARAMETER] if PARAMETER in model.parameters else backend.isolation_of(model)
    if chosen not in {"process", "thread"}:
        raise InvalidArgument(
            f"model '{model.name}': parameter '{PARAMETER}' is '{chosen}', it must be \"process\" or \"thread\""
        )
    return chosen == "process"


def loads_elsewhere(model: ModelContext, backend: type[Backend]) -> bool:
    """Say whether each worker process loads the model for itself, so that this process must not: it would hold what nobody uses.

    A backend with a launcher of its own decides by itself what `load` does here.
    """
    return isolated(model, backend) and backend.worker_launcher.__func__ is Backend.worker_launcher.__func__  # type: ignore[attr-defined]
