"""Vertex AI's endpoints: one route for predictions, one for health, and Triton's redirects.

Start at `frontend`, then `dialect`.
"""

from __future__ import annotations

from collections.abc import Mapping

from tritonpy import hookimpl


@hookimpl
def tritonpy_frontends() -> Mapping[str, str]:
    """Register the frontend as `vertex`."""
    return {"vertex": "tritonpy_frontend_vertex.frontend:VertexFrontend"}
