"""Frontends that run in frontend processes, as the engine's process sees them."""

from __future__ import annotations

from collections.abc import Mapping

from tritonpy import Engine
from tritonpy.frontend import Frontend, FrontendHost, FrontendHostContext
from tritonpy_frontend_processes.process_supervisor import ProcessSupervisor


class RemoteFrontend(Frontend):
    """A proxy for `frontend`, whose calls go to all frontend processes."""

    def __init__(self, name: str, frontend: Frontend, supervisor: ProcessSupervisor) -> None:
        super().__init__(frontend.options, frontend.context)
        self._name = name
        self._supervisor = supervisor
        supervisor.serve(name, frontend)

    async def start(self, engine: Engine) -> None:
        """Return when all processes accept connections. Raises StartupError."""
        await self._supervisor.start(engine)

    async def serving(self) -> None:
        """Tell the frontend in each process that the server is ready."""
        await self._supervisor.serving(self._name)

    async def stop_accepting(self, timeout_s: float, limit_s: float) -> None:
        """Return when clients no longer use the frontend's connections in any process."""
        await self._supervisor.stop_accepting(self._name, timeout_s, limit_s)

    async def drain(self) -> None:
        """Return when the frontend has finished its requests in flight in each process."""
        await self._supervisor.drain(self._name)

    async def stop(self) -> None:
        """Stop the processes."""
        await self._supervisor.stop()

    def address(self) -> str:
        """Return the common address of all processes."""
        return self._supervisor.address(self._name)


class FrontendProcesses(FrontendHost):
    """The frontend host "processes": runs frontends in `frontend_processes` processes."""

    def __init__(self, context: FrontendHostContext) -> None:
        super().__init__(context)
        self.supervisor = ProcessSupervisor(context.config, context.tracing, context.metrics)

    def host(self, frontends: Mapping[str, Frontend]) -> dict[str, Frontend]:
        """Return a proxy for each frontend that runs in the processes, and the others unchanged."""
        return {
            name: RemoteFrontend(name, frontend, self.supervisor) if frontend.scales else frontend
            for name, frontend in frontends.items()
        }

    def models_changed(self) -> None:
        self.supervisor.models_changed()
