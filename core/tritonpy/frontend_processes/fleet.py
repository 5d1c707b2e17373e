"""All frontend processes of a server."""

from __future__ import annotations

import asyncio
import logging
import os
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import msgspec

from tritonpy.api.claim import Claimed
from tritonpy.api.engine import Engine
from tritonpy.api.frontend import Frontend
from tritonpy.config.server import ServerConfig
from tritonpy.custom_metrics import CustomMetrics, ModelMetrics
from tritonpy.frontend_processes.conversation import Conversation
from tritonpy.frontend_processes.frontend_process import FrontendProcess
from tritonpy.frontend_processes.start import Start, TracerState
from tritonpy.logs import LogSettings, follow_log_settings, log_settings
from tritonpy.request_memory import memory_metrics
from tritonpy.runners.workers.connection import Connection
from tritonpy.tracing.tracing import Tracing

log = logging.getLogger("tritonpy.server")


class Fleet:
    """Starts, feeds and ends the processes together. `start` to `stop` run on the server's event loop, the rest in any thread."""

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
        self._claimed: dict[str, Claimed] = {}
        self._engine: Engine
        self._loop: asyncio.AbstractEventLoop | None = None
        self._starting: asyncio.Task[None] | None = None
        self._stopping: asyncio.Task[None] | None = None
        self._unfollow: Callable[[], None] = _nothing
        self.processes: list[FrontendProcess] = []

    def serve(self, name: str, frontend: Frontend) -> None:
        """Let the processes serve `frontend`; before `start`."""
        self._frontends[name] = frontend

    def address(self, name: str) -> str:
        """Return where clients reach a frontend; empty before `start`."""
        return self._claimed[name].claim.address if name in self._claimed else ""

    async def start(self, engine: Engine) -> None:
        """Take the addresses of all frontends, then start the processes; done once, whichever frontend asks first. Raises StartupError."""
        if self._starting is None:
            self._engine = engine
            self._starting = asyncio.get_running_loop().create_task(self._start())
        await self._starting

    async def serving(self, name: str) -> None:
        """Tell every process that the models are loaded."""
        await asyncio.gather(*(process.serving(name) for process in self.processes))

    async def wind_down(self, name: str, timeout_s: float, limit_s: float) -> None:
        """Return when clients use the connections of a frontend no more in any process."""
        asked = {"frontend": name, "timeout_s": timeout_s, "limit_s": limit_s}
        await asyncio.gather(*(process.ask("wind_down", asked) for process in self.processes))

    async def drain(self, name: str) -> None:
        """Return when a frontend has answered its live requests in every process."""
        for process in self.processes:
            process.give_up()
        self.models_changed()
        await asyncio.gather(*(process.ask("drain", {"frontend": name}) for process in self.processes))

    async def stop(self) -> None:
        """End the processes and give the addresses up; done once."""
        if self._stopping is None:
            self._stopping = asyncio.get_running_loop().create_task(self._stop())
        await asyncio.shield(self._stopping)

    def models_changed(self) -> None:
        """Let the processes forget what they know of models."""
        self._tell("models_changed", {})

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
        self._unfollow = follow_log_settings(self._tell_log_settings)
        self._tracing.activity_changed = self._tell_tracer
        self.processes = [
            FrontendProcess(index, self._describe, self._converse) for index in range(self._config.frontend_processes)
        ]
        results = await asyncio.gather(*(process.start() for process in self.processes), return_exceptions=True)
        for result in results:
            if isinstance(result, BaseException):
                raise result

    async def _stop(self) -> None:
        self._unfollow()
        self._tracing.activity_changed = _nothing
        await asyncio.gather(*(process.stop() for process in self.processes))
        self._metrics.close()
        for claimed in self._claimed.values():
            claimed.close()

    def _describe(self, index: int) -> tuple[Start, list[int]]:
        claims = {name: replace(claimed.claim, process=index) for name, claimed in self._claimed.items()}
        kept_headers = sorted({header for each in self._frontends.values() for header in each.context.kept_headers})
        start = Start.of(index, self._config, kept_headers, claims, log_settings(), self._tracer_state())
        sockets = [claim.listening for claim in claims.values() if claim.listening is not None]
        return start, [os.dup(listening.fileno()) for listening in sockets]

    def _converse(self, connection: Connection) -> Conversation:
        assert self._loop is not None  # noqa: S101
        return Conversation(
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

    def _tell_log_settings(self, settings: LogSettings) -> None:
        self._tell("log_settings", settings)

    def _tell_tracer(self) -> None:
        self._tell("tracer", self._tracer_state())

    def _tell(self, verb: str, arguments: Any) -> None:
        if self._loop is not None and not self._loop.is_closed():
            self._loop.call_soon_threadsafe(self._tell_all, verb, msgspec.to_builtins(arguments))

    def _tell_all(self, verb: str, arguments: Any) -> None:
        for process in self.processes:
            process.tell(verb, arguments)


def _nothing() -> None:
    """Before the start and after the end."""
