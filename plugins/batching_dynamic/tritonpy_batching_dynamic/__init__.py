"""Dynamic batching: the scheduler "dynamic" and its default batch policy "preferred"."""

from __future__ import annotations

from collections.abc import Mapping

from tritonpy import hookimpl


@hookimpl
def tritonpy_schedulers() -> Mapping[str, str]:
    """Serves every model whose configuration says `dynamic_batching`."""
    return {"dynamic": "tritonpy_batching_dynamic.scheduler:DynamicScheduler"}


@hookimpl
def tritonpy_batch_policies() -> Mapping[str, str]:
    """Cuts batches by preferred sizes and queue delay, unless a model's parameter `batch_policy` names another policy."""
    return {"preferred": "tritonpy_batching_dynamic.preferred:PreferredPolicy"}
