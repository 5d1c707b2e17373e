"""The HTTP frontend."""

from __future__ import annotations

from tritonpy_http_api.frontend import HttpApiFrontend


class HttpFrontend(HttpApiFrontend):
    """Triton's paths on a port, which several processes and protocols may share."""

    protocols = ("http/1.1",)
    scales = True
