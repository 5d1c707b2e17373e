"""The HTTP frontend behind Envoy's listeners."""

from __future__ import annotations

from typing import ClassVar

from tritonpy import Engine, Frontend, FrontendContext, Options
from tritonpy_frontend_envoy.embedded.host import Host, current
from tritonpy_frontend_envoy.embedded.reception import Surroundings
from tritonpy_frontend_envoy.http.application import HttpApplication
from tritonpy_frontend_http.composition import Composition
from tritonpy_frontend_http.options import HttpOptions


class EnvoyHttpFrontend(Frontend):
    """Triton's HTTP/REST protocol: what answers is that of the other HTTP frontend."""

    Options: ClassVar[type[Options]] = HttpOptions
    options: HttpOptions

    def __init__(self, options: HttpOptions, context: FrontendContext) -> None:
        super().__init__(options, context)
        self._host: Host | None = None
        self._composition: Composition | None = None
        self._application: HttpApplication | None = None

    async def start(self, engine: Engine) -> None:
        """Answer what Envoy, which listens already, has for us. Raises StartupError in a process that is not Envoy's."""
        host = self._host = current()
        surroundings = Surroundings(host.patrol, host.next_future, self.options.body_timeout_s)
        self._composition = Composition(engine, self.options, self.context)
        self._application = HttpApplication(self._composition, surroundings, self.context.log)
        await host.applications.set("http", self._application)

    async def serving(self) -> None:
        """Import the management routes, now that nobody waits for the server to become ready."""
        if self._composition is not None:
            self._composition.import_routes()

    async def drain(self) -> None:
        """Take no more connections, refuse new requests on those that are open, and wait for the live ones."""
        if self._host is None or self._composition is None or self._application is None:
            return
        await self._host.admin.stop_listening()
        await self._composition.calls.drain()
        await self._application.idle()

    def address(self) -> str:
        """Return `host:port` or `unix:/path` as clients reach it; empty before `start`."""
        return "" if self._host is None else self._host.address("http")
