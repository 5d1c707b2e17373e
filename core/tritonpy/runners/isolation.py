"""Isolation of instances in processes of their own."""

from __future__ import annotations

from tritonpy.api.backend import Backend, ModelContext
from tritonpy.errors import InvalidArgument

PARAMETER = "isolation"


def is_isolated(model: ModelContext, backend: type[Backend]) -> bool:
    """Return whether the instances of `model` run in worker processes.

    The model's parameter takes precedence over the backend's default. Raises `InvalidArgument` for
    another value.
    """
    chosen = model.parameters[PARAMETER] if PARAMETER in model.parameters else backend.isolation_of(model)
    if chosen not in {"process", "thread"}:
        raise InvalidArgument(
            f"model '{model.name}': parameter '{PARAMETER}' is '{chosen}'; expected \"process\" or \"thread\""
        )
    return chosen == "process"


def loads_in_worker(model: ModelContext, backend: type[Backend]) -> bool:
    """Return whether each worker loads the model itself, so that this process must not load it.

    A backend with its own launcher decides what `load` does in this process.
    """
    return is_isolated(model, backend) and backend.worker_launcher.__func__ is Backend.worker_launcher.__func__  # type: ignore[attr-defined]
