"""The gRPC frontend on grpcio."""

from __future__ import annotations

import asyncio
import sys
from typing import TYPE_CHECKING, Any

import grpc
from grpc_health.v1 import health_pb2_grpc

from tritonpy import Claim, ClaimedAddress, Descriptors, Engine, Frontend, FrontendContext, StartupError, unix_path
from tritonpy_frontend_grpc.addresses import claim_address
from tritonpy_frontend_grpc.aio_compression import ALGORITHMS, SERVER_ARGUMENTS, CompressionSettings, HandlerCollector
from tritonpy_frontend_grpc.call_options import make_access, make_service
from tritonpy_frontend_grpc.connection_options import connection_arguments
from tritonpy_frontend_grpc.health_servicer import AioHealth
from tritonpy_frontend_grpc.listeners import LISTENERS, listen_again, listen_on_port, listen_on_socket
from tritonpy_frontend_grpc.options import GrpcOptions
from tritonpy_frontend_grpc.reflection import add_reflection
from tritonpy_frontend_grpc.request_log import LoggedHandlers, RequestLog
from tritonpy_frontend_grpc.servicer import abort, make_handler
from tritonpy_frontend_grpc.tls_credentials import TlsCredentials

if TYPE_CHECKING:
    from tritonpy import UnixSocket
    from tritonpy_frontend_grpc.access import GrpcAccess
    from tritonpy_frontend_grpc.service import InferenceService

# Time for responses in flight to reach their clients in `stop`, after open streams have ended.
_GRACE_S = 0.25


class GrpcFrontend(Frontend):
    """Serves inference, grpc.health.v1 and reflection on one port or Unix domain socket.

    Several grpc.aio servers listen on one port, and the kernel spreads connections over them. Each
    server passes on one call per event-loop iteration; several servers allow larger batches.
    Uncompressed messages may have any size up to protobuf's limit of 2 GiB.
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
        """Listen. Raises StartupError if the address is unavailable or a TLS file is invalid."""
        options: GrpcOptions = self.options
        access = make_access(options, self.context)
        compression = CompressionSettings(
            options.max_decompressed_size, ALGORITHMS[options.infer_response_compression_level]
        )
        self._service = make_service(engine, options, self.context, access)
        self._health = AioHealth(engine)
        request_log = RequestLog(self.context.log)
        libraries: Any = HandlerCollector(request_log)
        health_pb2_grpc.add_HealthServicer_to_server(self._health, libraries)
        add_reflection(libraries)
        count = self._listeners(options)
        self._servers = [
            grpc.aio.server(
                handlers=(LoggedHandlers(make_handler(self._service, compression), request_log), *libraries.added),
                options=_channel_options(options, count, shares=count > 1 or self.context.claim is not None),
                interceptors=_interceptors(access, request_log),
            )
            for _ in range(count)
        ]
        try:
            self._address = self._listen(options)
        except StartupError:
            await asyncio.gather(*[_release(server) for server in self._servers])
            raise
        await asyncio.gather(*[server.start() for server in self._servers])

    def claim(self) -> ClaimedAddress:
        """Reserve the address for several processes. Raises StartupError if it is unavailable.

        Only the first process serves a Unix domain socket: grpc cannot adopt a listening socket.
        """
        options: GrpcOptions = self.options
        if path := unix_path(self._host):
            return ClaimedAddress(Claim(f"unix:{path}"), lambda: None)
        return claim_address(self._host, options.port, reuse=options.reuse_port)

    def _listeners(self, options: GrpcOptions) -> int:
        """Return the number of servers that share the port.

        It is 1 with a connection limit, which applies per server, and on systems other than Linux,
        which do not spread connections.
        """
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
        """Refuse inference, report NOT_SERVING, and wait for the requests in flight."""
        self._health.drain()
        await self._service.drain()

    async def stop(self) -> None:
        """End open calls, then close the connections."""
        if self._address:
            self._health.close()
            self._service.close()
            await asyncio.gather(*[server.stop(_GRACE_S) for server in self._servers])
        if self._socket is not None:
            self._socket.remove()

    def address(self) -> str:
        """Return the address for clients."""
        return self._address


async def _release(server: grpc.aio.Server) -> None:
    """Release the ports of a server that never started; grpc only stops a started server."""
    await server.start()
    await server.stop(None)


def _interceptors(access: GrpcAccess | None, request_log: RequestLog) -> tuple[Any, ...]:
    if access is None:
        return ()
    from tritonpy_frontend_grpc.access_interceptor import AccessInterceptor

    return (AccessInterceptor(access, abort, request_log),)


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
    """Return the connection limit of each server.

    Without a limit, grpc would use up all file descriptors.
    """
    return min(max(1, Descriptors.of_process().ceiling * 3 // 4 // listeners), 2**31 - 1)
