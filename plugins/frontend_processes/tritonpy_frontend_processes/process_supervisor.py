"""The supervisor of all frontend processes of a server."""

from __future__ import annotations

import asyncio
import logging
import os
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import msgspec

from tritonpy import Engine
from tritonpy.config import ServerConfig
from tritonpy.frontend import (
    ClaimedAddress,
    Frontend,
    LogSettings,
    follow_log_settings,
    log_settings,
    memory_metrics,
)
from tritonpy.metrics import CustomMetrics, ModelMetrics
from tritonpy.tracing import Tracing
from tritonpy_engine_rpc.connection import Connection
from tritonpy_frontend_processes.frontend_process import FrontendProcess
from tritonpy_frontend_processes.rpc_session import FrontendRpcSession
from tritonpy_frontend_processes.start_message import StartMessage, TracerState

log = logging.getLogger("tritonpy.server")


class ProcessSupervisor:
    """Starts, informs and stops the frontend processes.

    `start` to `stop` run on the server's event loop, other methods in any thread.
    """

    def __init__(
        self,
        config: ServerConfig,
        tracing: Tracing,
        metrics: CustomMetrics,
    ) -> None:
        self._config = config
        self._tracing = tracing
        self._metrics = ModelMetrics(metrics)
        self._request_memory: dict[str, list[int]] = {}
        metrics.add_source(lambda: memory_metrics(self._request_memory))
        self._frontends: dict[str, Frontend] = {}
        self._claimed: dict[str, ClaimedAddress] = {}
        self._engine: Engine
        self._loop: asyncio.AbstractEventLoop | None = None
        self._starting: asyncio.Task[None] | None = None
        self._stopping: asyncio.Task[None] | None = None
        self._stop_following: Callable[[], None] = _nothing
        self.processes: list[FrontendProcess] = []

    def serve(self, name: str, frontend: Frontend) -> None:
        """Add a frontend for the processes. Call it before `start`."""
        self._frontends[name] = frontend

    def address(self, name: str) -> str:
        """Return the address of a frontend, empty before `start`."""
        return self._claimed[name].claim.address if name in self._claimed else ""

    async def start(self, engine: Engine) -> None:
        """Bind the addresses of all frontends, then start the processes.

        Later calls wait for the first.

        Raises StartupError.
        """
        if self._starting is None:
            self._engine = engine
            self._starting = asyncio.get_running_loop().create_task(self._start())
        await self._starting

    async def serving(self, name: str) -> None:
        """Tell every process that the server is ready."""
        await asyncio.gather(*(process.serving(name) for process in self.processes))

    async def stop_accepting(self, name: str, timeout_s: float, limit_s: float) -> None:
        """Return when clients no longer use a frontend's connections in any process."""
        arguments = {"frontend": name, "timeout_s": timeout_s, "limit_s": limit_s}
        await asyncio.gather(
            *(process.call("stop_accepting", arguments) for process in self.processes)
        )

    async def drain(self, name: str) -> None:
        """Return when a frontend has finished its requests in flight in every process."""
        for process in self.processes:
            process.stop_restarting()
        self.models_changed()
        await asyncio.gather(
            *(process.call("drain", {"frontend": name}) for process in self.processes)
        )

    async def stop(self) -> None:
        """Stop the processes and release the addresses. Later calls wait for the first."""
        if self._stopping is None:
            self._stopping = asyncio.get_running_loop().create_task(self._stop())
        await asyncio.shield(self._stopping)

    def models_changed(self) -> None:
        """Let the processes drop cached model metadata."""
        self._notify("models_changed", {})

    async def _start(self) -> None:
        self._loop = asyncio.get_running_loop()
        try:
            for name, frontend in self._frontends.items():
                self._claimed[name] = frontend.claim()
            await self._launch()
        except BaseException:
            await self._stop()
            raise

    async def _launch(self) -> None:
        self._stop_following = follow_log_settings(self._notify_log_settings)
        self._tracing.activity_changed = self._notify_tracer
        self.processes = [
            FrontendProcess(index, self._describe, self._make_session)
            for index in range(self._config.frontend_processes)
        ]
        results = await asyncio.gather(
            *(process.start() for process in self.processes), return_exceptions=True
        )
        for result in results:
            if isinstance(result, BaseException):
                raise result

    async def _stop(self) -> None:
        self._stop_following()
        self._tracing.activity_changed = _nothing
        await asyncio.gather(*(process.stop() for process in self.processes))
        self._metrics.close()
        for claimed in self._claimed.values():
            claimed.close()

    def _describe(self, index: int) -> tuple[StartMessage, list[int]]:
        claims = {
            name: replace(claimed.claim, process=index) for name, claimed in self._claimed.items()
        }
        kept_headers = sorted(
            {header for each in self._frontends.values() for header in each.context.kept_headers}
        )
        start = StartMessage.of(
            index, self._config, kept_headers, claims, log_settings(), self._tracer_state()
        )
        sockets = [claim.listening for claim in claims.values() if claim.listening is not None]
        return start, [os.dup(listening.fileno()) for listening in sockets]

    def _make_session(self, connection: Connection) -> FrontendRpcSession:
        assert self._loop is not None  # noqa: S101
        return FrontendRpcSession(
            self._engine,
            self._tracing,
            self._metrics,
            self._loop,
            connection,
            self.models_changed,
            self._request_memory,
        )

    def _tracer_state(self) -> TracerState:
        return TracerState(self._tracing.active, self._tracing.headers)

    def _notify_log_settings(self, settings: LogSettings) -> None:
        self._notify("log_settings", settings)

    def _notify_tracer(self) -> None:
        self._notify("tracer", self._tracer_state())

    def _notify(self, verb: str, arguments: Any) -> None:
        if self._loop is not None and not self._loop.is_closed():
            self._loop.call_soon_threadsafe(self._notify_all, verb, msgspec.to_builtins(arguments))

    def _notify_all(self, verb: str, arguments: Any) -> None:
        for process in self.processes:
            process.notify(verb, arguments)


def _nothing() -> None:
    """Do nothing, before the start and after the end."""
