"""Whether the event loop may execute requests of a model, in place of its instances' threads."""

from __future__ import annotations

from tritonpy.api.backend import Backend, ModelContext
from tritonpy.config.parameters import parameter_bool

PARAMETER = "inline"


def may_run_inline(model: ModelContext, backend: type[Backend]) -> bool:
    """Say whether the backend can be called from any thread, its executions end by themselves, and the model's parameter does not forbid it.

    Raises InvalidArgument for a parameter that says neither yes nor no.
    """
    wanted = PARAMETER not in model.parameters or parameter_bool(PARAMETER, model.parameters[PARAMETER])
    config = model.config
    waits = config.model_transaction_policy.decoupled or config.HasField("sequence_batching")
    return wanted and backend.runs_on_any_thread and not waits
