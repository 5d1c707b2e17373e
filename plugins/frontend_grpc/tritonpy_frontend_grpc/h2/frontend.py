"""The gRPC frontend on the HTTP/2 server of `tritonpy_http2`."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Callable
from functools import partial

from tritonpy import Engine
from tritonpy.frontend import ClaimedAddress, Frontend, FrontendContext, UnixSocket, unix_path
from tritonpy_frontend_grpc.addresses import claim_address
from tritonpy_frontend_grpc.h2.call_server import GRACE_S, CallServer
from tritonpy_frontend_grpc.h2.grpc_calls import GrpcCalls
from tritonpy_frontend_grpc.h2.listeners import (
    BACKLOG,
    Http2Listener,
    Listening,
    listen_on_claim,
    listen_on_port,
    tls_context,
)
from tritonpy_frontend_grpc.options import GrpcOptions


class H2GrpcFrontend(Frontend):
    """Serves inference, grpc.health.v1 and reflection on one port or Unix domain socket.

    Uncompressed messages may have any size up to protobuf's limit of 2 GiB.
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
        self._call_server: CallServer
        self._listener: Http2Listener
        self._calls: GrpcCalls

    async def start(self, engine: Engine) -> None:
        """Listen. Raises StartupError if the address is unavailable or a TLS file is invalid."""
        context = tls_context(self.options.tls, self.context.log)
        self._call_server = CallServer(engine, self.options, self.context)
        self._calls = GrpcCalls(self._call_server)
        sockets, self._address = self._listen()
        self._listener = Http2Listener(
            self._calls, self.options, context, self.context.log, self.context.memory
        )
        self._listener.serve(sockets)

    def accept(self, accepted: socket.socket) -> None:
        """Serve a connection accepted on a shared port."""
        self._listener.accept(accepted)

    def is_encrypted(self) -> bool:
        """Return whether TLS is configured."""
        return self.options.tls.on

    def serve_http(self, connection: Callable[[], asyncio.Protocol]) -> None:
        """Serve each stream that is not gRPC with an in-memory HTTP/1.1 connection."""
        from tritonpy_http2.http1_stream import begin_http1

        self._calls.begin_http = partial(begin_http1, connection)

    def claim(self) -> ClaimedAddress:
        """Reserve the address for several processes. Raises StartupError if it is unavailable."""
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

    async def serving(self) -> None:
        """Log Triton's line, which scripts wait for."""
        self.context.log.info("Started GRPCInferenceService at %s", self.address())

    async def drain(self) -> None:
        """Refuse inference, report NOT_SERVING, and wait until all responses are delivered."""
        await self._call_server.drain()
        await self._listener.delivered()

    async def stop(self) -> None:
        """End open calls, then close the connections."""
        if self._address:
            await self._call_server.close()
            await self._listener.stop(GRACE_S)
        if self._socket is not None:
            self._socket.remove()

    def address(self) -> str:
        """Return the address for clients."""
        return self._address
