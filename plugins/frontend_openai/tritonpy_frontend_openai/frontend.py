"""The OpenAI frontend on the server's event loop."""

from __future__ import annotations

import socket
from typing import ClassVar

from tritonpy import Engine, Options, StartupError
from tritonpy.frontend import (
    Acceptor,
    ClaimedAddress,
    Evictable,
    Frontend,
    FrontendContext,
    claim_address,
    delivered,
    http_tls_context,
    listen_on_claim,
    listen_on_port,
    unread,
)
from tritonpy_frontend_openai.application import Application
from tritonpy_frontend_openai.options import OpenAiOptions
from tritonpy_http1 import HttpConnection, HttpLimits, HttpServer

Evictable.register(HttpConnection)  # it has the methods, but the library knows nothing of tritonpy

_PROTOCOL = "the OpenAI API"


class OpenAiFrontend(Frontend):
    """OpenAI's API on a port of its own, for every model that generates text."""

    Options: ClassVar[type[Options]] = OpenAiOptions
    options: OpenAiOptions
    scales = True

    def __init__(self, options: OpenAiOptions, context: FrontendContext) -> None:
        super().__init__(options, context)
        self._address = ""
        self._server: HttpServer | None = None
        self._application: Application | None = None

    async def start(self, engine: Engine) -> None:
        """Listen. Raises StartupError if the address is unavailable or a TLS file is invalid."""
        options, log = self.options, self.context.log
        if options.mount:
            self._application = Application(engine, options, self.context)
            self.context.http_mounts.add(self._application.handles, self._application)
            self._address = "the port of the HTTP frontend"
            return
        tls = None
        if options.tls.on:
            tls = http_tls_context(options.tls, "frontends.openai.tls", log)
        listening = self._listen()
        self._application = Application(engine, options, self.context)
        connection = type(
            "OpenAiConnection", (HttpConnection,), {"limits": HttpLimits.from_settings(options)}
        )
        self._server = HttpServer("OpenAI", self._application, log, connection, tls, Acceptor)
        self._server.serve([listening])

    async def serving(self) -> None:
        """Report a frontend that no port serves."""
        if self.options.mount and not self.context.http_mounts.is_served:
            self.context.log.error("frontends.openai.mount has no effect without the HTTP frontend")

    def claim(self) -> ClaimedAddress:
        """Reserve the address for several processes. Raises StartupError if it is unavailable."""
        options = self.options
        if options.mount:
            raise StartupError(
                "frontends.openai.mount cannot be used with several frontend processes: give the "
                "frontend a port of its own"
            )
        host = options.host or self.context.host
        return claim_address(_PROTOCOL, host, options.port, reuse=options.reuse_port)

    def _listen(self) -> socket.socket:
        options = self.options
        host = options.host or self.context.host
        if self.context.claim is not None:
            listening, self._address = listen_on_claim(_PROTOCOL, self.context.claim, host)
        else:
            listening, self._address = listen_on_port(
                _PROTOCOL, host, options.port, reuse=options.reuse_port
            )
        return listening

    async def stop_accepting(self, timeout_s: float, limit_s: float) -> None:
        """Refuse new connections with 503, and wait until clients stop using the open ones."""
        if self._server is not None:
            self._server.refuse_new_connections()
            await self._server.unused(timeout_s, self.options.drain_idle_s, limit_s)

    async def drain(self) -> None:
        """Refuse new connections and requests with 503; wait until all responses are delivered."""
        server = self._server
        if self._application is None:
            return
        self._application.draining = True
        if server is not None:
            server.refuse_new_connections()
            await server.answered()
        await self._application.inference.finish_background()
        if server is None:  # the HTTP frontend waits for the calls on its port
            return
        await delivered(
            lambda: sum([unread(each.transport) for each in server.server_state.connections])
        )

    async def stop(self) -> None:
        """Close the remaining connections and the port."""
        server, self._server = self._server, None
        if server is not None:
            await server.stop()
        if self._application is not None:
            await self._application.inference.stop()

    def address(self) -> str:
        """Return `host:port`, the address for clients; empty before `start`.

        A mounted frontend has the address of the HTTP frontend, and says so.
        """
        return self._address
