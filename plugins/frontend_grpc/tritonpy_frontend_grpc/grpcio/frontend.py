"""The gRPC frontend on grpcio."""

from __future__ import annotations

import asyncio
import sys
from typing import TYPE_CHECKING, Any

import grpc
from grpc_health.v1.health_pb2_grpc import HealthServicer, add_HealthServicer_to_server

from tritonpy import Engine, StartupError, TritonError
from tritonpy.frontend import (
    Claim,
    ClaimedAddress,
    Descriptors,
    Frontend,
    FrontendContext,
    unix_path,
)
from tritonpy_frontend_grpc.addresses import claim_address
from tritonpy_frontend_grpc.call_options import make_access, make_service
from tritonpy_frontend_grpc.grpcio.aio_compression import (
    ALGORITHMS,
    SERVER_ARGUMENTS,
    CompressionSettings,
    HandlerCollector,
)
from tritonpy_frontend_grpc.grpcio.listeners import (
    LISTENERS,
    TlsCredentials,
    listen_again,
    listen_on_port,
    listen_on_socket,
)
from tritonpy_frontend_grpc.grpcio.request_log import LoggedHandlers, RequestLog
from tritonpy_frontend_grpc.grpcio.servicer import abort, make_handler, make_load_handler
from tritonpy_frontend_grpc.health import Health
from tritonpy_frontend_grpc.options import INT32_MAX, ConnectionOptions, GrpcOptions
from tritonpy_frontend_grpc.reflection import add_reflection

if TYPE_CHECKING:
    from tritonpy.frontend import UnixSocket
    from tritonpy_frontend_grpc.access import GrpcAccess
    from tritonpy_frontend_grpc.service import InferenceService

# Time for responses in flight to reach their clients in `stop`, after open streams have ended.
_GRACE_S = 0.25
_HANDLERS = {
    (False, False): grpc.unary_unary_rpc_method_handler,
    (False, True): grpc.unary_stream_rpc_method_handler,
    (True, False): grpc.stream_unary_rpc_method_handler,
    (True, True): grpc.stream_stream_rpc_method_handler,
}
_ARGUMENTS = {
    "keepalive_time_ms": "grpc.keepalive_time_ms",
    "keepalive_timeout_ms": "grpc.keepalive_timeout_ms",
    "keepalive_permit_without_calls": "grpc.keepalive_permit_without_calls",
    "http2_max_pings_without_data": "grpc.http2.max_pings_without_data",
    "http2_min_recv_ping_interval_without_data_ms": "grpc.http2.min_ping_interval_without_data_ms",
    "http2_max_ping_strikes": "grpc.http2.max_ping_strikes",
    "handshake_timeout_ms": "grpc.server_handshake_timeout_ms",
}
_OPTIONAL_ARGUMENTS = {
    "max_connection_age_ms": "grpc.max_connection_age_ms",
    "max_connection_age_grace_ms": "grpc.max_connection_age_grace_ms",
    "max_connection_idle_ms": "grpc.max_connection_idle_ms",
    "max_connections": "grpc.max_allowed_incoming_connections",
}
# By default, grpc rejects calls at random with CANCELLED when 1,000 calls, or one for 30 s, wait
# for the event loop.
_UNLIMITED_QUEUE = [
    ("grpc.server.max_pending_requests", INT32_MAX),
    ("grpc.server.max_pending_requests_hard_limit", INT32_MAX),
    (
        "grpc.server_max_unrequested_time_in_server",
        INT32_MAX // 1000,
    ),  # s; more would overflow grpc's milliseconds
]


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
        add_HealthServicer_to_server(self._health, libraries)
        add_reflection(libraries)
        stream = self._service.load_stream
        load_handlers = [] if stream is None else [make_load_handler(stream)]
        count = self._listeners(options)
        self._servers = [
            grpc.aio.server(
                handlers=(
                    LoggedHandlers(make_handler(self._service, compression), request_log),
                    *libraries.added,
                    *load_handlers,
                ),
                options=_channel_options(
                    options, count, shares=count > 1 or self.context.claim is not None
                ),
                interceptors=() if access is None else (AccessInterceptor(access, request_log),),
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
        shared = (
            sys.platform == "linux" and not unix_path(self._host) and not options.max_connections
        )
        return LISTENERS if shared else 1

    def _listen(self, options: GrpcOptions) -> str:
        first, *others = self._servers
        credentials, claim = TlsCredentials(options.tls, self.context.log), self.context.claim
        if path := unix_path(self._host):
            if claim is not None and claim.process:
                return claim.address
            from tritonpy.frontend import UnixSocket

            self._socket = UnixSocket(path, int(options.socket_mode, 8))
            return listen_on_socket(first, self._socket, credentials.make())
        if claim is not None and claim.port:
            address = listen_on_port(first, self._host, claim.port, credentials.make(), reuse=True)
        else:
            address = listen_on_port(
                first, self._host, options.port, credentials.make(), reuse=options.reuse_port
            )
        for server in others:
            listen_again(server, address, credentials.make())
        return address

    async def serving(self) -> None:
        """Log Triton's line, which scripts wait for."""
        self.context.log.info("Started GRPCInferenceService at %s", self.address())

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


class AccessInterceptor(grpc.aio.ServerInterceptor):  # type: ignore[type-arg]  # generic in the stubs alone
    """Checks the metadata of each call to inference, health and reflection with `access`.

    A denied call ends with an error, which `request_log` logs.
    """

    def __init__(self, access: GrpcAccess, request_log: RequestLog) -> None:
        self._access = access
        self._request_log = request_log

    async def intercept_service(self, continuation: Any, details: Any) -> Any:
        """Return the handler of a call, or one that refuses it; None for an unknown method."""
        handler = await continuation(details)
        if handler is None:
            return None
        try:
            self._access.check_call(details.method, details.invocation_metadata or ())
        except TritonError as error:
            return self._request_log.wrap(self._refusing(handler, error), details.method)
        return handler

    def _refusing(self, handler: Any, error: TritonError) -> Any:
        async def refuse(_request: object, context: Any) -> None:
            await abort(context, error)

        return _HANDLERS[handler.request_streaming, handler.response_streaming](refuse)


class AioHealth(Health, HealthServicer):  # type: ignore[misc]  # the library has no types
    """Serves `Health` on grpc.aio.

    The base class from grpcio rejects methods that newer protocol versions add.
    """


async def _release(server: grpc.aio.Server) -> None:
    """Release the ports of a server that never started; grpc only stops a started server."""
    await server.start()
    await server.stop(None)


def _channel_options(
    options: GrpcOptions, listeners: int, *, shares: bool
) -> list[tuple[str, Any]]:
    return [
        *(
            []
            if options.max_connections
            else [("grpc.max_allowed_incoming_connections", _most_connections(listeners))]
        ),
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
    return min(max(1, Descriptors.of_process().ceiling * 3 // 4 // listeners), INT32_MAX)


def connection_arguments(options: ConnectionOptions) -> list[tuple[str, Any]]:
    """Return the options as channel arguments of a grpc server."""
    optional = {
        name: argument for name, argument in _OPTIONAL_ARGUMENTS.items() if getattr(options, name)
    }
    given = [
        (argument, int(getattr(options, name)))
        for name, argument in (_ARGUMENTS | optional).items()
    ]
    newer = (
        "grpc.http2.ping_timeout_ms",
        options.keepalive_timeout_ms,
    )  # the argument of newer grpc versions
    return [*given, *_UNLIMITED_QUEUE, newer]
