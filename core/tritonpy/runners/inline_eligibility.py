"""Models whose requests the event loop may execute instead of their instances' threads."""

from __future__ import annotations

from tritonpy.api.backend import Backend, ModelContext
from tritonpy.config.parameters import parameter_bool

PARAMETER = "inline"


def may_run_inline(model: ModelContext, backend: type[Backend]) -> bool:
    """Return whether instances of `model` may run on the event loop.

    The backend must be callable from any thread, its executions must end by themselves, and the
    parameter `inline` must not forbid it. Raises `InvalidArgument` if the parameter is not a
    boolean.
    """
    requested = PARAMETER not in model.parameters or parameter_bool(PARAMETER, model.parameters[PARAMETER])
    config = model.config
    waits = config.model_transaction_policy.decoupled or config.HasField("sequence_batching")
    return requested and backend.runs_on_any_thread and not waits
