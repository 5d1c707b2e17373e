"""The HTTP/REST frontend: Triton's protocol on Litestar and uvicorn.

Start at `frontend`, then `protocol` (inference) and `routes` (everything else).
"""

from __future__ import annotations

from collections.abc import Mapping

from tritonpy import hookimpl


@hookimpl
def tritonpy_frontends() -> Mapping[str, str]:
    """Register the frontend as `http`. Its module is imported only by a server that uses it."""
    return {"http": "tritonpy_frontend_http.frontend:HttpFrontend"}
