"""Triton's rate limiter: resources that instances need while they execute, and the order of grants.

Start at `execution_count`. The package may import public names of `tritonpy`.
"""

from __future__ import annotations

from collections.abc import Mapping

from tritonpy import hookimpl


@hookimpl
def tritonpy_rate_limiters() -> Mapping[str, str]:
    """Register the limiter that `rate_limit: {mode: execution_count}` in server.yaml enables."""
    return {"execution_count": "tritonpy_rate_limiter.execution_count:ExecutionCountLimiter"}
