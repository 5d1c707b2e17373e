"""Lazy models and the memory budget: loads models at their first request, and evicts idle ones.

Start at `policy`. The package may import public names of `tritonpy`.
"""

from __future__ import annotations

from collections.abc import Mapping

from tritonpy import hookimpl


@hookimpl
def tritonpy_residency_policies() -> Mapping[str, str]:
    """Register the policy that serves lazy models and `memory:` of server.yaml."""
    return {"lru": "tritonpy_residency.policy:LruPolicy"}
