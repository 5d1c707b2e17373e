"""A frontend that other processes serve, as this one's server sees it."""

from __future__ import annotations

from collections.abc import Mapping

from tritonpy.api.engine import Engine
from tritonpy.api.frontend import Frontend
from tritonpy.frontend_processes.fleet import Fleet


class Elsewhere(Frontend):
    """Stands in for `frontend`: what it is told goes to all processes, once for all frontends that they serve."""

    def __init__(self, name: str, frontend: Frontend, fleet: Fleet) -> None:
        super().__init__(frontend.options, frontend.context)
        self._name = name
        self._fleet = fleet
        fleet.serve(name, frontend)

    async def start(self, engine: Engine) -> None:
        """Return when all processes accept. Raises StartupError."""
        await self._fleet.start(engine)

    async def serving(self) -> None:
        """Let the frontend of each process go on."""
        await self._fleet.serving(self._name)

    async def wind_down(self, timeout_s: float, limit_s: float) -> None:
        """Return when clients use the connections of no process any more."""
        await self._fleet.wind_down(self._name, timeout_s, limit_s)

    async def drain(self) -> None:
        """Return when the frontend of each process has answered its live requests."""
        await self._fleet.drain(self._name)

    async def stop(self) -> None:
        """End the processes."""
        await self._fleet.stop()

    def address(self) -> str:
        """Where clients reach them all."""
        return self._fleet.address(self._name)


def served_elsewhere(frontends: Mapping[str, Frontend], fleet: Fleet) -> dict[str, Frontend]:
    """Return the frontends with a stand-in for each that the processes of `fleet` can serve."""
    return {
        name: Elsewhere(name, frontend, fleet) if frontend.scales else frontend for name, frontend in frontends.items()
    }
