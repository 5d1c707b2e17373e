"""Dynamic batching: the scheduler "dynamic" and its default batch policy "preferred".

Start at `scheduler`, then `request_queue`.
Decisions are pure functions of queue and time.
"""

from __future__ import annotations

from collections.abc import Mapping

from tritonpy import hookimpl


@hookimpl
def tritonpy_schedulers() -> Mapping[str, str]:
    """Register the scheduler of models with `dynamic_batching`."""
    return {"dynamic": "tritonpy_batching_dynamic.scheduler:DynamicScheduler"}


@hookimpl
def tritonpy_batch_policies() -> Mapping[str, str]:
    """Register the default batch policy, which applies preferred sizes and the queue delay."""
    return {"preferred": "tritonpy_batching_dynamic.preferred:PreferredPolicy"}
