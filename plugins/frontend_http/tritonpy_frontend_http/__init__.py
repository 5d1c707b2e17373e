"""The HTTP/REST frontend: Triton's protocol on Litestar and uvicorn."""

from __future__ import annotations

from collections.abc import Mapping

from tritonpy import hookimpl


@hookimpl
def tritonpy_frontends() -> Mapping[str, str]:
    """Offer the frontend as `http`; its module is imported when a server is built with it."""
    return {"http": "tritonpy_frontend_http.frontend:HttpFrontend"}
