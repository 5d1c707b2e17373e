"""Weighted fair queueing between tenants, with quotas: the way of sharing "fair"."""

from __future__ import annotations

from collections.abc import Mapping

from tritonpy import hookimpl


@hookimpl
def tritonpy_sharings() -> Mapping[str, str]:
    """Shares the server between tenants where server.yaml says `sharing: {fair: …}`."""
    return {"fair": "tritonpy_queueing_fair.sharing:FairSharing"}
