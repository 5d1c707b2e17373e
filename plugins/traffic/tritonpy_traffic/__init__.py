"""Traffic policy for tritonpy: routes with weights, sticky clients, canaries that roll back, shadow copies."""

from __future__ import annotations

from collections.abc import Mapping

from tritonpy import hookimpl


@hookimpl
def tritonpy_routers() -> Mapping[str, str]:
    """Routes the requests of clients where server.yaml says `routers: {traffic: …}`."""
    return {"traffic": "tritonpy_traffic.router:TrafficRouter"}
