"""The standard health service, grpc.health.v1.

Independent of the transport: contexts are unused.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any

from grpc_health.v1.health_pb2 import HealthCheckRequest, HealthCheckResponse

from tritonpy import Engine, TritonError
from tritonpy_protos import SERVICE


class Health:
    """Reports the readiness of the server.

    Check ignores the service name; Watch accepts only known names. The engine does not signal
    changes of its readiness, so a watcher polls it every `period_s` seconds.
    """

    def __init__(self, engine: Engine, period_s: float = 0.5) -> None:
        self._engine = engine
        self._period_s = period_s
        self._draining = self._closed = False
        self._change: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    def drain(self) -> None:
        """Report NOT_SERVING from now on, and notify the watchers."""
        self._draining = True
        self._notify_watchers()

    def close(self) -> None:
        """End all Watch calls."""
        self._closed = True
        self._notify_watchers()

    async def Check(self, request: HealthCheckRequest, context: Any) -> HealthCheckResponse:  # noqa: N802
        """Return the current status."""
        return HealthCheckResponse(status=self._status())

    async def Watch(  # noqa: N802
        self, request: HealthCheckRequest, context: Any
    ) -> AsyncIterator[HealthCheckResponse]:
        """Yield the current status and every change."""
        known, last = request.service in ("", SERVICE), None
        while not self._closed:
            change = self._change
            status = self._status() if known else HealthCheckResponse.SERVICE_UNKNOWN
            if status != last:
                last = status
                yield HealthCheckResponse(status=status)
            await asyncio.wait([change], timeout=self._period_s)

    def _status(self) -> HealthCheckResponse.ServingStatus:
        try:
            serving = not self._draining and self._engine.is_ready()
        except TritonError:  # raised while the server exits
            serving = False
        return HealthCheckResponse.SERVING if serving else HealthCheckResponse.NOT_SERVING

    def _notify_watchers(self) -> None:
        change, self._change = self._change, asyncio.get_running_loop().create_future()
        change.set_result(None)
