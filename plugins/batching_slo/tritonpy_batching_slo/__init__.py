"""A batch policy that keeps a latency target: the policy "slo".

Start at `policy`; `cost` and `wait_tuner` learn from executions.
"""

from __future__ import annotations

from collections.abc import Mapping

from tritonpy import hookimpl


@hookimpl
def tritonpy_batch_policies() -> Mapping[str, str]:
    """Register the policy "slo", which keeps the latency target in the parameter `slo_ms`."""
    return {"slo": "tritonpy_batching_slo.policy:SloPolicy"}
