"""The options of the Vertex AI frontend."""

from __future__ import annotations

import os
from typing import Annotated

from msgspec import Meta, field

from tritonpy import StartupError
from tritonpy_http_api.options import HttpApiOptions

_DEFAULT_PORT = 8080


def _port() -> int:
    text = os.environ.get("AIP_HTTP_PORT") or str(_DEFAULT_PORT)
    if not (text.isascii() and text.isdigit() and int(text) <= 65535):
        raise StartupError(f"AIP_HTTP_PORT must be a port from 0 to 65535, not '{text}'")
    return int(text)


class VertexOptions(HttpApiOptions, frozen=True):
    """The options under `frontends: vertex:` of server.yaml.

    Vertex AI gives port and routes in the environment.
    """

    port: Annotated[
        int, Meta(ge=0, le=65535, description="TCP port (default: $AIP_HTTP_PORT, 8080)")
    ] = field(default_factory=_port)
    host: Annotated[
        str | None, Meta(description="Address to listen on; the default is what the service needs")
    ] = "0.0.0.0"
    predict_route: Annotated[
        str, Meta(description="Path of predictions (default: $AIP_PREDICT_ROUTE)")
    ] = field(default_factory=lambda: os.environ.get("AIP_PREDICT_ROUTE", ""))
    health_route: Annotated[
        str, Meta(description="Path of the health probe (default: $AIP_HEALTH_ROUTE)")
    ] = field(default_factory=lambda: os.environ.get("AIP_HEALTH_ROUTE", ""))
    default_model: Annotated[
        str, Meta(description="Model of predictions (default: the only model)")
    ] = ""

    def __post_init__(self) -> None:
        """Raise ValueError for an invalid combination of options."""
        super().__post_init__()
        for route in (self.predict_route, self.health_route):
            if route and not route.startswith("/"):
                raise ValueError(f"a route is a path that starts with '/', got '{route}'")
        if self.predict_route and self.predict_route == self.health_route:
            raise ValueError(
                f"predictions and health need different routes, both are '{self.predict_route}'"
            )
