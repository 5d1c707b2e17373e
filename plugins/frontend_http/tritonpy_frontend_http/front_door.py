"""The outermost ASGI application: health, what no route may see, and the way to the management routes."""

from __future__ import annotations

import asyncio
import logging
import re
from typing import Any

from tritonpy import Engine, TritonError
from tritonpy_frontend_http.errors import STATUS, STOPPING, error_body
from tritonpy_frontend_http.infer_calls import InferCalls
from tritonpy_frontend_http.infer_path import infer_target

_READY = "/v2/health/ready"
_PROBES = frozenset({_READY, "/v2/health/live"})
_VERSIONED = re.compile(r"/v2/models/[^/]+/versions/([^/]*)")
_STOPPING_BODY = error_body(STOPPING)


class FrontDoor:
    """Answers probes itself: a server is ready long before the framework of the management routes is imported.

    The import takes half a second, so it happens in a thread, when `import_routes` is called or the first request wants a route.
    """

    def __init__(self, engine: Engine, calls: InferCalls, log: logging.Logger, limit: int) -> None:
        self._engine = engine
        self._calls = calls
        self._log = log
        self._limit = limit
        self._routes: asyncio.Future[Any] | None = None

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        path = scope["path"]
        if self._calls.draining:
            await _send_json(send, 503, _STOPPING_BODY)
        elif path in _PROBES:
            await self._answer_probe(path, scope["method"], send)
        elif infer_target(scope["raw_path"].decode("latin-1")):  # by POST it would not come here
            await _send_json(send, 405, error_body("Method Not Allowed"))
        elif not _is_known(path):
            await _send_json(send, 404, error_body("Not Found"))
        else:
            await (await self.import_routes())(scope, receive, send)

    def import_routes(self) -> asyncio.Future[Any]:
        """Return the management application; the first call starts its import."""
        if self._routes is None:
            self._routes = asyncio.get_running_loop().run_in_executor(None, self._make_routes)
        return asyncio.shield(self._routes)  # one caller that goes away must not take it from the others

    def _make_routes(self) -> Any:
        from tritonpy_frontend_http.routes import management_app

        return management_app(self._engine, self._log, self._limit)

    async def _answer_probe(self, path: str, method: str, send: Any) -> None:
        if method != "GET":
            await _send_json(send, 405, error_body("Method Not Allowed"))
            return
        try:
            good = self._engine.is_ready() if path == _READY else self._engine.is_live()
        except TritonError as error:
            await _send_json(send, STATUS[error.code], error_body(error.message))
            return
        headers = [(b"content-type", b"text/plain"), (b"content-length", b"0")]
        await send({"type": "http.response.start", "status": 200 if good else 400, "headers": headers})
        await send({"type": "http.response.body", "body": b""})


def _is_known(path: str) -> bool:
    # Litestar would take "/v2/" for "/v2" and any text for a version; to Triton neither path exists.
    versioned = _VERSIONED.match(path)
    return not path.endswith("/") and (versioned is None or (versioned[1].isascii() and versioned[1].isdigit()))


async def _send_json(send: Any, status: int, body: bytes) -> None:
    headers = [(b"content-type", b"application/json"), (b"content-length", b"%d" % len(body))]
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": body})
