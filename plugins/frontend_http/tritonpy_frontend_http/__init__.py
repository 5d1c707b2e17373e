"""Triton's HTTP/REST protocol on its usual port. The protocol itself is in `tritonpy_http_api`."""

from __future__ import annotations

from collections.abc import Mapping

from tritonpy import hookimpl


@hookimpl
def tritonpy_frontends() -> Mapping[str, str]:
    """Register the frontend as `http`. Its module is imported only by a server that uses it."""
    return {"http": "tritonpy_frontend_http.frontend:HttpFrontend"}
