"""Frontends that run in frontend processes, as the engine's process sees them."""

from __future__ import annotations

from collections.abc import Mapping

from tritonpy.api.engine import Engine
from tritonpy.api.frontend import Frontend
from tritonpy.frontend_processes.process_supervisor import ProcessSupervisor


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


def with_remote_frontends(frontends: Mapping[str, Frontend], supervisor: ProcessSupervisor) -> dict[str, Frontend]:
    """Return `frontends` with a RemoteFrontend for each that `supervisor`'s processes can serve."""
    return {
        name: RemoteFrontend(name, frontend, supervisor) if frontend.scales else frontend
        for name, frontend in frontends.items()
    }
