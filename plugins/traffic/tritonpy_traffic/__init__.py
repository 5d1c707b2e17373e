"""Traffic policy: routes with weights, sticky clients, automatic canaries and shadow copies.

Start at `router` and `route`; `canary` decides on promotion and rollback.
"""

from __future__ import annotations

from collections.abc import Mapping

from tritonpy import hookimpl


@hookimpl
def tritonpy_routers() -> Mapping[str, str]:
    """Register the router that `routers: {traffic: …}` in server.yaml enables."""
    return {"traffic": "tritonpy_traffic.router:TrafficRouter"}
