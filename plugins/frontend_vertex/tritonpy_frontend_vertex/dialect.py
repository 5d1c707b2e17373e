"""Vertex AI's routes, content type and redirects."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from tritonpy_frontend_vertex.options import VertexOptions
from tritonpy_http_api.dialect import Dialect, forwarded, send_response, translate_binary_type
from tritonpy_http_api.errors import error_body
from tritonpy_http_api.http_service import HttpService
from tritonpy_http_api.infer_calls import Target
from tritonpy_http_api.infer_path import infer_target

BINARY_TYPE = b"application/vnd.vertex-ai-triton.binary+json;json-header-size="
_REDIRECT = b"x-vertex-ai-triton-redirect"
_MODEL = r"/v2/models/[^/]+(?:/versions/[0-9]+)?"
# The calls that a redirect may make, by the method of each.
_ALLOWED = {
    "GET": re.compile(
        rf"/v2|/v2/health/(?:live|ready)|/v2/models/stats|{_MODEL}(?:/(?:ready|config|stats))?"
        r"|/v2/(?:system|cuda)sharedmemory(?:/region/[^/]+)?/status"
    ),
    "POST": re.compile(r"/v2/repository(?:/[^/]+)?/index"),
}
_FORBIDDEN = re.compile(
    r"/v2/(?:system|cuda)sharedmemory(?:/region/[^/]+)?/(?:register|unregister)"
    r"|/v2/repository(?:/[^/]+)?/models/[^/]+/(?:load|unload)"
)


class VertexDialect(Dialect):
    """Serves the routes of an endpoint. `default_model` is set when the server is ready.

    The header X-Vertex-Ai-Triton-Redirect sends a request to another call of Triton's protocol. As
    in Triton, it cannot load models or register shared memory.
    """

    def __init__(self, service: HttpService, options: VertexOptions) -> None:
        self._service = service
        self._options = options
        self.default_model = options.default_model

    def infer_target(self, path: str, headers: Mapping[bytes, bytes]) -> Target | None:
        """Return the default model, or the model of a redirected inference call."""
        if path != self._options.predict_route:
            return None
        redirect = headers.get(_REDIRECT)
        if redirect is None:
            return self.default_model, ""
        return infer_target(_path(redirect))

    def translate_headers(self, headers: Mapping[bytes, bytes]) -> Mapping[bytes, bytes]:
        """Read the length of the JSON from Vertex AI's content type of binary tensors."""
        return translate_binary_type(headers, BINARY_TYPE)

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        """Serve health and redirected calls."""
        path, method = scope["path"], scope["method"]
        redirect = dict(scope["headers"]).get(_REDIRECT)
        if path == self._options.health_route:
            health = forwarded(scope, method, "/v2/health/ready")
            await self._service.application(health, receive, send)
        elif path != self._options.predict_route:
            await send_response(send, 400, error_body("Bad Request"))
        elif method != "POST":
            await send_response(send, 405, error_body("Method Not Allowed"))
        elif redirect is None:  # an inference call, which does not arrive here
            await send_response(send, 400, error_body("Bad Request"))
        else:
            await self._redirect(_path(redirect), scope, receive, send)

    async def _redirect(self, path: str, scope: Any, receive: Any, send: Any) -> None:
        if path == "/metrics":
            metrics = self._service.mounts.named.get("metrics")
            if metrics is None:
                text = "The metrics are off: enable the frontend 'metrics'"
                await send_response(send, 400, error_body(text))
                return
            await metrics(forwarded(scope, "GET", path), receive, send)
            return
        for method, allowed in _ALLOWED.items():
            if allowed.fullmatch(path):
                await self._service.application(forwarded(scope, method, path), receive, send)
                return
        if _FORBIDDEN.fullmatch(path):
            text = "This call cannot be redirected: use the HTTP port of the server"
            await send_response(send, 403, error_body(text))
            return
        await send_response(send, 400, error_body("Bad Request"))


def _path(redirect: bytes) -> str:
    return "/" + redirect.decode("latin-1")
