"""The root ASGI application.

It serves health probes and generate calls, and dispatches to the management routes.
"""

from __future__ import annotations

import asyncio
import logging
import re
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from tritonpy import Engine, TritonError
from tritonpy.frontend import FlowControl
from tritonpy_http_api.errors import STOPPING, error_body, status_of
from tritonpy_http_api.generate.body import BodyReader
from tritonpy_http_api.generate.path import generate_target
from tritonpy_http_api.infer_calls import InferCalls
from tritonpy_http_api.infer_path import infer_target

if TYPE_CHECKING:
    from tritonpy_http_api.generate.calls import GenerateCalls

_READY = "/v2/health/ready"
_PROBES = frozenset({_READY, "/v2/health/live"})
_VERSIONED = re.compile(r"/v2/models/[^/]+/versions/([^/]*)")
_STOPPING_BODY = error_body(STOPPING)
_NO_METHOD_BODY = error_body("Method Not Allowed")
_NO_PATH_BODY = error_body("Not Found")
_JSON = b"application/json"
_PLAIN = b"text/plain"  # As in Triton, JSON errors have this type before a request is read.


class RootApplication:
    """Handles probes itself, so that the server is ready before the management routes are imported.

    The import takes half a second. It runs in a thread when `import_routes` is called, or at the
    first request for a route. `make_flow_control` returns the `FlowControl` of one generate call.
    With `forward_unknown`, generate calls pass on parameters that the model does not read.
    """

    def __init__(
        self,
        engine: Engine,
        calls: InferCalls,
        log: logging.Logger,
        bodies: BodyReader,
        make_flow_control: Callable[[], FlowControl],
        forward_unknown: bool = False,
    ) -> None:
        self._engine = engine
        self._calls = calls
        self._log = log
        self._bodies = bodies
        self._make_flow_control = make_flow_control
        self._forward_unknown = forward_unknown
        self._generate_calls: GenerateCalls | None = None
        self._routes: asyncio.Future[Any] | None = None

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        path = scope["raw_path"].decode("latin-1")
        if self._calls.draining:
            await _send(send, 503, _STOPPING_BODY)
        elif path in _PROBES:
            await self._send_probe_response(path, scope["method"], send)
        elif infer_target(path):  # POST never arrives here: the protocol handles it
            await _send(send, 405, _NO_METHOD_BODY, _PLAIN, b"POST")
        elif target := generate_target(path):
            await self._import_generate_calls().serve(target, scope, receive, send)
        elif not _is_known(path):
            await _send(send, 404, _NO_PATH_BODY, _PLAIN)
        else:
            await (await self.import_routes())(_litestar_scope(scope, path), receive, send)

    def import_routes(self) -> asyncio.Future[Any]:
        """Return a future of the management application. The first call starts its import."""
        if self._routes is None:
            self._routes = asyncio.get_running_loop().run_in_executor(None, self._make_routes)
        return asyncio.shield(
            self._routes
        )  # cancelling one caller must not cancel the shared import

    def _import_generate_calls(self) -> GenerateCalls:
        if self._generate_calls is None:
            from tritonpy_http_api.generate.calls import GenerateCalls

            self._generate_calls = GenerateCalls(
                self._engine,
                self._log,
                self._bodies,
                self._make_flow_control,
                self._calls.tracer,
                self._forward_unknown,
            )
        return self._generate_calls

    def _make_routes(self) -> Any:
        from tritonpy_http_api.routes import management_app

        return management_app(self._engine, self._log, self._bodies)

    async def _send_probe_response(self, path: str, method: str, send: Any) -> None:
        if method not in {"GET", "HEAD"}:
            await _send(send, 405, _NO_METHOD_BODY, _PLAIN, b"GET, HEAD")
            return
        try:
            is_healthy = self._engine.is_ready() if path == _READY else self._engine.is_live()
        except TritonError as error:
            await _send(send, status_of(error), error_body(error.message))
            return
        headers = [(b"content-type", _PLAIN), (b"content-length", b"0")]
        await send(
            {
                "type": "http.response.start",
                "status": 200 if is_healthy else 400,
                "headers": headers,
            }
        )
        await send({"type": "http.response.body", "body": b""})


def _litestar_scope(scope: Any, path: str) -> Any:
    """Return the scope for Litestar, with another method instead of OPTIONS and HEAD.

    Litestar would handle OPTIONS itself and does not support HEAD.
    """
    method = scope["method"]
    if method == "OPTIONS":
        return {**scope, "method": "TRACE"}
    if method == "HEAD" and path.endswith("/ready"):  # the transport drops the body
        return {**scope, "method": "GET"}
    return scope


def _is_known(path: str) -> bool:
    # Litestar accepts "/v2/", "//v2", "%2F" and any text as a version. Triton knows no such paths.
    if path.endswith("/") or "//" in path or "%2f" in path.lower():
        return False
    versioned = _VERSIONED.match(path)
    return versioned is None or (versioned[1].isascii() and versioned[1].isdigit())


async def _send(
    send: Any, status: int, body: bytes, kind: bytes = _JSON, allow: bytes = b""
) -> None:
    headers = [(b"content-type", kind), (b"content-length", b"%d" % len(body))]
    if allow:
        headers.append((b"allow", allow))
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": body})
