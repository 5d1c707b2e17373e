"""The gRPC frontend on grpcio: its server, its life."""

from __future__ import annotations

import asyncio
import sys
from typing import TYPE_CHECKING, Any

import grpc
from grpc_health.v1 import health_pb2_grpc

from tritonpy import Claim, Claimed, Descriptors, Engine, Frontend, FrontendContext, StartupError, unix_path
from tritonpy_frontend_grpc.addresses import claim_address
from tritonpy_frontend_grpc.call_options import access_of, service_of
from tritonpy_frontend_grpc.connections import connection_arguments
from tritonpy_frontend_grpc.health_servicer import AioHealth
from tritonpy_frontend_grpc.listening import LISTENERS, listen_again, listen_on_port, listen_on_socket
from tritonpy_frontend_grpc.options import GrpcOptions
from tritonpy_frontend_grpc.packing import ALGORITHMS, SERVER_ARGUMENTS, Packing, UnpackingHandlers
from tritonpy_frontend_grpc.reflection import add_reflection
from tritonpy_frontend_grpc.servicer import abort, handler_of
from tritonpy_frontend_grpc.telling import Telling, TellingHandlers
from tritonpy_frontend_grpc.tls_credentials import TlsCredentials

if TYPE_CHECKING:
    from tritonpy import UnixSocket
    from tritonpy_frontend_grpc.access import GrpcAccess
    from tritonpy_frontend_grpc.service import InferenceService

# How long `stop` lets answers that are on their way reach their clients. Calls that clients hold open are ended before.
_GRACE_S = 0.25


class GrpcFrontend(Frontend):
    """Serves the inference protocol, grpc.health.v1 and reflection on one port or Unix domain socket.

    A port is listened on by several servers of grpc.aio: each hands over one call per turn of the event loop, and calls that come together are what
    batches are made of. The kernel spreads the connections over them.

    Messages that are not compressed may have any size that protobuf can carry (2 GiB).
    """

    Options = GrpcOptions
    scales = True

    def __init__(self, options: GrpcOptions, context: FrontendContext) -> None:
        super().__init__(options, context)
        self._host = options.host or context.host
        self._address = ""
        self._socket: UnixSocket | None = None
        self._servers: list[grpc.aio.Server] = []
        self._service: InferenceService
        self._health: AioHealth

    async def start(self, engine: Engine) -> None:
        """Listen. Raises StartupError where the address cannot be had or a TLS file is wrong."""
        options: GrpcOptions = self.options
        access = access_of(options, self.context)
        packing = Packing(options.max_decompressed_size, ALGORITHMS[options.infer_response_compression_level])
        self._service = service_of(engine, options, self.context, access)
        self._health = AioHealth(engine)
        telling = Telling(self.context.log)
        libraries: Any = UnpackingHandlers(telling)
        health_pb2_grpc.add_HealthServicer_to_server(self._health, libraries)
        add_reflection(libraries)
        count = self._listeners(options)
        self._servers = [
            grpc.aio.server(
                handlers=(TellingHandlers(handler_of(self._service, packing), telling), *libraries.added),
                options=_channel_options(options, count, shares=count > 1 or self.context.claim is not None),
                interceptors=_guards(access, telling),
            )
            for _ in range(count)
        ]
        try:
            self._address = self._listen(options)
        except StartupError:
            await asyncio.gather(*[_release(server) for server in self._servers])
            raise
        await asyncio.gather(*[server.start() for server in self._servers])

    def claim(self) -> Claimed:
        """Take the address for several processes. A Unix domain socket is served by the first of them: grpc takes none that listens already.

        Raises StartupError.
        """
        options: GrpcOptions = self.options
        if path := unix_path(self._host):
            return Claimed(Claim(f"unix:{path}"), lambda: None)
        return claim_address(self._host, options.port, reuse=options.reuse_port)

    def _listeners(self, options: GrpcOptions) -> int:
        """Return how many servers share the port: a limit of connections is that of one, and only Linux spreads them."""
        shared = sys.platform == "linux" and not unix_path(self._host) and not options.max_connections
        return LISTENERS if shared else 1

    def _listen(self, options: GrpcOptions) -> str:
        first, *others = self._servers
        credentials, claim = TlsCredentials(options.tls, self.context.log), self.context.claim
        if path := unix_path(self._host):
            if claim is not None and claim.process:
                return claim.address
            from tritonpy import UnixSocket

            self._socket = UnixSocket(path, int(options.socket_mode, 8))
            return listen_on_socket(first, self._socket, credentials.make())
        if claim is not None and claim.port:
            address = listen_on_port(first, self._host, claim.port, credentials.make(), reuse=True)
        else:
            address = listen_on_port(first, self._host, options.port, credentials.make(), reuse=options.reuse_port)
        for server in others:
            listen_again(server, address, credentials.make())
        return address

    async def drain(self) -> None:
        """Refuse inference, say NOT_SERVING, and return when the accepted requests are answered."""
        self._health.drain()
        await self._service.drain()

    async def stop(self) -> None:
        """End the calls that clients hold open, then the connections."""
        if self._address:
            self._health.close()
            self._service.close()
            await asyncio.gather(*[server.stop(_GRACE_S) for server in self._servers])
        if self._socket is not None:
            self._socket.remove()

    def address(self) -> str:
        """Where clients reach it."""
        return self._address


async def _release(server: grpc.aio.Server) -> None:
    """Give up the ports of a server that never served: grpc does so only where one was started."""
    await server.start()
    await server.stop(None)


def _guards(access: GrpcAccess | None, telling: Telling) -> tuple[Any, ...]:
    if access is None:
        return ()
    from tritonpy_frontend_grpc.guard import Guard

    return (Guard(access, abort, telling),)


def _channel_options(options: GrpcOptions, listeners: int, *, shares: bool) -> list[tuple[str, Any]]:
    return [
        *([] if options.max_connections else [("grpc.max_allowed_incoming_connections", _most_connections(listeners))]),
        ("grpc.max_send_message_length", -1),
        ("grpc.max_receive_message_length", options.max_body_bytes or -1),
        ("grpc.so_reuseport", int(options.reuse_port or shares)),
        *SERVER_ARGUMENTS,
        *connection_arguments(options),
    ]


def _most_connections(listeners: int) -> int:
    """Return how many connections each of several servers may have: grpc accepts by itself and would leave others no descriptor."""
    return min(max(1, Descriptors.of_process().ceiling * 3 // 4 // listeners), 2**31 - 1)
