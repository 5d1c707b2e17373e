"""A batch policy that keeps a latency target: the policy "slo"."""

from __future__ import annotations

from collections.abc import Mapping

from tritonpy import hookimpl


@hookimpl
def tritonpy_batch_policies() -> Mapping[str, str]:
    """Cuts batches by the target in a model's parameter `slo_ms`, for models whose parameter `batch_policy` is "slo"."""
    return {"slo": "tritonpy_batching_slo.policy:SloPolicy"}
