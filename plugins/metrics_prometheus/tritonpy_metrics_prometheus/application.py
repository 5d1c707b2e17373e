"""The ASGI application that answers scrapes."""

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
    """GET and HEAD /metrics answer with the text format; another path is 404, another method 405, with JSON bodies.

    Scrapes are collected one after the other in `collecting`: the event loop that serves requests does not wait for them, and they do
    not wait for what else blocks the threads of the loop, such as a model that loads.
    """

    def __init__(self, registry: CollectorRegistry, collecting: Executor) -> None:
        self._registry = registry
        self._collecting = collecting

    async def __call__(self, scope: Mapping[str, Any], receive: object, send: Send) -> None:
        """Answer one request."""
        if scope["path"] != "/metrics":
            await answer(send, 404, b"application/json", b'{"error":"Not Found"}')
        elif scope["method"] not in {"GET", "HEAD"}:
            await answer(send, 405, b"application/json", b'{"error":"Method Not Allowed"}', ((b"allow", b"GET, HEAD"),))
        else:
            text = await asyncio.get_running_loop().run_in_executor(self._collecting, self._text)
            await answer(send, 200, CONTENT_TYPE, text)

    def _text(self) -> bytes:
        return text_format(self._registry.collect())


async def answer(
    send: Send, status: int, content_type: bytes, body: bytes, headers: tuple[tuple[bytes, bytes], ...] = ()
) -> None:
    """Send a whole answer; `headers` come behind its type and length."""
    length = str(len(body)).encode()
    own = ((b"content-type", content_type), (b"content-length", length), *headers)
    await send({"type": "http.response.start", "status": status, "headers": own})
    await send({"type": "http.response.body", "body": body})
