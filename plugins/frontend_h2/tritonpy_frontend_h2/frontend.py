"""The gRPC frontend on HTTP/2 of this package: its server, its life."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Callable
from functools import partial

from tritonpy import Claimed, Engine, Frontend, FrontendContext, UnixSocket, unix_path
from tritonpy_frontend_grpc.addresses import claim_address
from tritonpy_frontend_grpc.options import GrpcOptions
from tritonpy_frontend_grpc.wire.serving import GRACE_S, Serving
from tritonpy_frontend_h2.grpc_calls import GrpcCalls
from tritonpy_frontend_h2.listening import BACKLOG, Listening, listen_on_claim, listen_on_port, tls_context
from tritonpy_frontend_h2.server import Http2Server


class H2GrpcFrontend(Frontend):
    """The inference protocol over gRPC, grpc.health.v1 and reflection: what answers is that of the other gRPC frontends.

    Messages that are not compressed may have any size that protobuf can carry (2 GiB).
    """

    Options = GrpcOptions
    protocols = ("h2",)
    scales = True
    options: GrpcOptions

    def __init__(self, options: GrpcOptions, context: FrontendContext) -> None:
        super().__init__(options, context)
        self._host = options.host or context.host
        self._address = ""
        self._socket: UnixSocket | None = None
        self._serving: Serving
        self._server: Http2Server
        self._calls: GrpcCalls

    async def start(self, engine: Engine) -> None:
        """Listen. Raises StartupError where the address cannot be had or a TLS file is wrong."""
        context = tls_context(self.options.tls, self.context.log)
        self._serving = Serving(engine, self.options, self.context)
        self._calls = GrpcCalls(self._serving)
        self._server = Http2Server(self._calls, self.options, context, self.context.log, self.context.memory)
        sockets, self._address = self._listen()
        self._server.serve(sockets)

    def accept(self, accepted: socket.socket) -> None:
        """Serve a connection of a shared port."""
        self._server.accept(accepted)

    def is_encrypted(self) -> bool:
        """Return whether the options name a certificate."""
        return self.options.tls.on

    def serve_http(self, connection: Callable[[], asyncio.Protocol]) -> None:
        """Serve streams that are not gRPC with HTTP/1.1 connections in memory, one each."""
        from tritonpy_frontend_h2.http1_stream import begin_http1

        self._calls.begin_http = partial(begin_http1, connection)

    def claim(self) -> Claimed:
        """Take the address for several processes. Raises StartupError."""
        if path := unix_path(self._host):
            return UnixSocket(path, int(self.options.socket_mode, 8)).claim(BACKLOG)
        return claim_address(self._host, self.options.port, reuse=self.options.reuse_port)

    def _listen(self) -> Listening:
        options, claim = self.options, self.context.claim
        if self.context.single_port is not None:
            return Listening([], self.context.single_port.address)
        if claim is not None:
            return listen_on_claim(claim, self._host)
        if path := unix_path(self._host):
            self._socket = UnixSocket(path, int(options.socket_mode, 8))
            return Listening([self._socket.listen(BACKLOG)], self._socket.address)
        return listen_on_port(self._host, options.port, reuse=options.reuse_port)

    async def drain(self) -> None:
        """Refuse inference, say NOT_SERVING, and return when the accepted requests are answered and clients have their answers."""
        await self._serving.drain()
        await self._server.delivered()

    async def stop(self) -> None:
        """End the calls that clients hold open, then the connections."""
        if self._address:
            await self._serving.close()
            await self._server.stop(GRACE_S)
        if self._socket is not None:
            self._socket.remove()

    def address(self) -> str:
        """Where clients reach it."""
        return self._address
