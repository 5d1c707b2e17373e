"""The gRPC frontend behind Envoy's listeners."""

from __future__ import annotations

from math import inf
from typing import ClassVar

from tritonpy import Engine, Frontend, FrontendContext, Options
from tritonpy_frontend_envoy.embedded.host import Host, current
from tritonpy_frontend_envoy.embedded.reception import Surroundings
from tritonpy_frontend_envoy.grpc.application import GrpcApplication
from tritonpy_frontend_grpc.options import GrpcOptions


class EnvoyGrpcFrontend(Frontend):
    """The inference protocol over gRPC, grpc.health.v1 and reflection: what answers is that of the other gRPC frontend."""

    Options: ClassVar[type[Options]] = GrpcOptions
    options: GrpcOptions

    def __init__(self, options: GrpcOptions, context: FrontendContext) -> None:
        super().__init__(options, context)
        self._host: Host | None = None
        self._application: GrpcApplication | None = None

    async def start(self, engine: Engine) -> None:
        """Answer what Envoy, which listens already, has for us. Raises StartupError in a process that is not Envoy's."""
        host = self._host = current()
        surroundings = Surroundings(host.patrol, host.next_future, inf)
        self._application = GrpcApplication(engine, self.options, self.context, surroundings)
        together = self._application.serving.service.together
        host.rounds.begin, host.rounds.end = together.begin, together.end
        await host.applications.set("grpc", self._application)

    async def drain(self) -> None:
        """Refuse inference, say NOT_SERVING, and return when the accepted requests are answered."""
        if self._application is not None:
            await self._application.serving.drain()

    async def stop(self) -> None:
        """End the calls that clients hold open."""
        if self._application is not None:
            await self._application.serving.close()

    def address(self) -> str:
        """Return `host:port` or `unix:/path` as clients reach it; empty before `start`."""
        return "" if self._host is None else self._host.address("grpc")
