"""The gRPC frontend: its options, its server, its life."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import TYPE_CHECKING, Annotated, Any, Literal

import grpc
from grpc_health.v1 import health_pb2_grpc
from msgspec import Meta

from tritonpy import (
    ApiCategory,
    ByteSize,
    Engine,
    Frontend,
    FrontendContext,
    Restriction,
    TlsOptions,
    check_restrictions,
    unix_path,
)
from tritonpy_frontend_grpc.connections import ConnectionOptions, connection_arguments
from tritonpy_frontend_grpc.health import Health
from tritonpy_frontend_grpc.listening import credentials_of, listen_on_port, listen_on_socket
from tritonpy_frontend_grpc.packing import ALGORITHMS, SERVER_ARGUMENTS, UNASKED, Packing, UnpackingServer
from tritonpy_frontend_grpc.reflection import add_reflection
from tritonpy_frontend_grpc.service import InferenceService, abort
from tritonpy_frontend_grpc.stream import Window
from tritonpy_frontend_grpc.telling import Telling, TellingHandlers

if TYPE_CHECKING:
    from tritonpy import UnixSocket
    from tritonpy_frontend_grpc.access import GrpcAccess

# How long `stop` lets answers that are on their way reach their clients. Calls that clients hold open are ended before.
_GRACE_S = 0.25


class GrpcOptions(ConnectionOptions, frozen=True):
    """The keys of `frontends: grpc:`."""

    port: Annotated[int, Meta(ge=0, le=65535, description="port of the gRPC endpoint; 0 takes a free one")] = 8001
    host: Annotated[str | None, Meta(description="address to listen on, where it is not the server's; unix:/path")] = (
        None
    )
    reuse_port: Annotated[bool, Meta(description="share the port with other servers on this machine")] = False
    socket_mode: Annotated[
        str, Meta(pattern="^0?[0-7]{3}$", description="who may connect to unix:/path, as for chmod")
    ] = "0660"
    tls: Annotated[TlsOptions, Meta(description="certificate and key that encrypt the port")] = TlsOptions()
    infer_response_compression_level: Annotated[
        Literal["none", "low", "medium", "high"], Meta(description="compression of answers, where the client takes it")
    ] = "none"
    max_decompressed_size: Annotated[
        ByteSize, Meta(ge=1, description="largest message that a compressed one may become")
    ] = UNASKED.limit
    max_response_pool_size: Annotated[
        int, Meta(ge=1, description="answers of one decoupled request that may wait for a slow client")
    ] = 1024
    max_response_pool_bytes: Annotated[
        ByteSize, Meta(ge=1, description="bytes of such answers that may wait, the last of them not counted")
    ] = 2**20
    restricted_apis: Annotated[
        tuple[Restriction, ...],
        Meta(description="groups of calls that need the header triton-grpc-protocol-KEY with a secret value"),
    ] = ()
    header_forward_pattern: Annotated[
        str, Meta(description="metadata whose key it matches anywhere become parameters of inference requests")
    ] = ""

    def __post_init__(self) -> None:
        """Raise ValueError for what no single option shows."""
        check_restrictions(self.restricted_apis, "protocol")
        if self.header_forward_pattern:
            from tritonpy import compile_pattern

            compile_pattern(self.header_forward_pattern)


class GrpcFrontend(Frontend):
    """Serves the inference protocol, grpc.health.v1 and reflection on one port or Unix domain socket.

    Messages that are not compressed may have any size that protobuf can carry (2 GiB).
    """

    Options = GrpcOptions

    def __init__(self, options: GrpcOptions, context: FrontendContext) -> None:
        super().__init__(options, context)
        self._host = options.host or context.host
        self._address = ""
        self._socket: UnixSocket | None = None
        self._server: grpc.aio.Server
        self._service: InferenceService
        self._health: Health

    async def start(self, engine: Engine) -> None:
        """Listen. Raises StartupError where the address cannot be had or a TLS file is wrong."""
        options: GrpcOptions = self.options
        window = Window(options.max_response_pool_size, options.max_response_pool_bytes)
        access = self._access()
        packing = Packing(options.max_decompressed_size, ALGORITHMS[options.infer_response_compression_level])
        self._service = self._service_class()(engine, window, self.context.log, access, packing, self.context.tracer)
        self._health = Health(engine)
        telling = Telling(self.context.log)
        self._server = grpc.aio.server(
            handlers=(TellingHandlers(self._service.handler(), telling),),
            options=_channel_options(options),
            interceptors=_guards(access, telling),
        )
        unpacking: Any = UnpackingServer(self._server, telling)
        health_pb2_grpc.add_HealthServicer_to_server(self._health, unpacking)
        add_reflection(unpacking)
        self._address = self._listen(options)
        await self._server.start()

    def _listen(self, options: GrpcOptions) -> str:
        credentials = credentials_of(options.tls, self.context.log)
        if path := unix_path(self._host):
            from tritonpy import UnixSocket

            self._socket = UnixSocket(path, int(options.socket_mode, 8))
            return listen_on_socket(self._server, self._socket, credentials)
        return listen_on_port(self._server, self._host, options.port, credentials, reuse=options.reuse_port)

    def _service_class(self) -> type[InferenceService]:
        if not any(name.startswith("TRITONSERVER_") and "DELAY" in name for name in os.environ):
            return InferenceService
        from tritonpy_frontend_grpc.delays import delayed_service

        return delayed_service(os.environ, self.context.log)

    def _access(self) -> GrpcAccess | None:
        options, gatekeeper, kept_headers = self.options, self.context.gatekeeper, self.context.kept_headers
        if not (options.restricted_apis or options.header_forward_pattern or gatekeeper or kept_headers):
            return None
        from tritonpy_frontend_grpc.access import GrpcAccess

        pattern, note = options.header_forward_pattern, self._refusals() if options.restricted_apis else None
        return GrpcAccess(options.restricted_apis, pattern, gatekeeper, kept_headers, note)

    def _refusals(self) -> Callable[[ApiCategory], None]:
        from tritonpy import Refusals

        return Refusals(self.context.metrics, "grpc", self.context.log).note

    async def drain(self) -> None:
        """Refuse inference, say NOT_SERVING, and return when the accepted requests are answered."""
        self._health.drain()
        await self._service.drain()

    async def stop(self) -> None:
        """End the calls that clients hold open, then the connections."""
        if self._address:
            self._health.close()
            self._service.close()
            await self._server.stop(_GRACE_S)
        if self._socket is not None:
            self._socket.remove()

    def address(self) -> str:
        """Where clients reach it."""
        return self._address


def _guards(access: GrpcAccess | None, telling: Telling) -> tuple[Any, ...]:
    if access is None:
        return ()
    from tritonpy_frontend_grpc.guard import Guard

    return (Guard(access, abort, telling),)


def _channel_options(options: GrpcOptions) -> list[tuple[str, Any]]:
    return [
        ("grpc.max_send_message_length", -1),
        ("grpc.max_receive_message_length", -1),
        ("grpc.so_reuseport", int(options.reuse_port)),
        *SERVER_ARGUMENTS,
        *connection_arguments(options),
    ]
