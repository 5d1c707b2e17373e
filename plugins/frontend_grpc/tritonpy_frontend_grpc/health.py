"""The standard health service, grpc.health.v1, from the engine's readiness. Knows no transport: contexts are nobody's business here."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any

from grpc_health.v1.health_pb2 import HealthCheckRequest, HealthCheckResponse

from tritonpy import Engine, TritonError
from tritonpy_protos import SERVICE


class Health:
    """Check answers for the server as a whole, whatever service it is asked about; Watch knows its names.

    The engine tells nobody when its readiness changes, so a watcher looks every `period_s` seconds.
    """

    def __init__(self, engine: Engine, period_s: float = 0.5) -> None:
        self._engine = engine
        self._period_s = period_s
        self._draining = self._closed = False
        self._news: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    def drain(self) -> None:
        """Be not serving from now on, and tell the watchers."""
        self._draining = True
        self._announce()

    def close(self) -> None:
        """End the calls of the watchers."""
        self._closed = True
        self._announce()

    async def Check(self, request: HealthCheckRequest, context: Any) -> HealthCheckResponse:  # noqa: N802
        """Answer once."""
        return HealthCheckResponse(status=self._status())

    async def Watch(self, request: HealthCheckRequest, context: Any) -> AsyncIterator[HealthCheckResponse]:  # noqa: N802
        """Answer now and at every change."""
        known, last = request.service in ("", SERVICE), None
        while not self._closed:
            news = self._news
            status = self._status() if known else HealthCheckResponse.SERVICE_UNKNOWN
            if status != last:
                last = status
                yield HealthCheckResponse(status=status)
            await asyncio.wait([news], timeout=self._period_s)

    def _status(self) -> HealthCheckResponse.ServingStatus:
        try:
            serving = not self._draining and self._engine.is_ready()
        except TritonError:  # a server that exits says so this way
            serving = False
        return HealthCheckResponse.SERVING if serving else HealthCheckResponse.NOT_SERVING

    def _announce(self) -> None:
        news, self._news = self._news, asyncio.get_running_loop().create_future()
        news.set_result(None)
