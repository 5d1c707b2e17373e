"""Weighted fair queueing between tenants, with quotas: the sharing "fair".

Start at `fair_sharing` and `fair_queue`.
"""

from __future__ import annotations

from collections.abc import Mapping

from tritonpy import hookimpl


@hookimpl
def tritonpy_sharings() -> Mapping[str, str]:
    """Register the sharing that `sharing: {fair: …}` in server.yaml enables."""
    return {"fair": "tritonpy_queueing_fair.fair_sharing:FairSharing"}
