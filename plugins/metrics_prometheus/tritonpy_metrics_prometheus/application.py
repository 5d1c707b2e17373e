"""The ASGI application that serves scrapes."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping, MutableMapping
from concurrent.futures import Executor
from typing import Any

from prometheus_client import CollectorRegistry

from tritonpy_metrics_prometheus.exposition import text_format

Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]
CONTENT_TYPE = b"text/plain; charset=utf-8"


class MetricsApplication:
    """Serves GET and HEAD /metrics in the text format.

    Other paths are 404 and other methods 405, with JSON bodies. Scrapes are collected sequentially
    in `executor`. So the event loop does not wait for them, and they do not wait for tasks in the
    loop's default threads, such as a model load.
    """

    def __init__(self, registry: CollectorRegistry, executor: Executor) -> None:
        self._registry = registry
        self._executor = executor

    async def __call__(self, scope: Mapping[str, Any], receive: object, send: Send) -> None:
        """Respond to one request."""
        if scope["path"] != "/metrics":
            await send_response(send, 404, b"application/json", b'{"error":"Not Found"}')
        elif scope["method"] not in {"GET", "HEAD"}:
            await send_response(
                send,
                405,
                b"application/json",
                b'{"error":"Method Not Allowed"}',
                ((b"allow", b"GET, HEAD"),),
            )
        else:
            text = await asyncio.get_running_loop().run_in_executor(self._executor, self._text)
            await send_response(send, 200, CONTENT_TYPE, text)

    def _text(self) -> bytes:
        return text_format(self._registry.collect())


async def send_response(
    send: Send,
    status: int,
    content_type: bytes,
    body: bytes,
    headers: tuple[tuple[bytes, bytes], ...] = (),
) -> None:
    """Send a complete response. `headers` follow its content type and length."""
    length = str(len(body)).encode()
    own = ((b"content-type", content_type), (b"content-length", length), *headers)
    await send({"type": "http.response.start", "status": status, "headers": own})
    await send({"type": "http.response.body", "body": body})
