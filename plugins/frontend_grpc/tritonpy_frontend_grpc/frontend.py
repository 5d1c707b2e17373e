"""The gRPC frontend: its options, its server, its life."""

from __future__ import annotations

import socket
from typing import Annotated, Any

import grpc
from grpc_health.v1 import health_pb2_grpc
from msgspec import Meta

from tritonpy import Engine, Frontend, FrontendContext, Options, StartupError
from tritonpy_frontend_grpc.health import Health
from tritonpy_frontend_grpc.reflection import add_reflection
from tritonpy_frontend_grpc.service import InferenceService

# How long `stop` lets answers that are on their way reach their clients. Calls that clients hold open are ended before.
_GRACE_S = 0.25


class GrpcOptions(Options, frozen=True):
    """The keys of `frontends: grpc:`."""

    port: Annotated[int, Meta(ge=0, le=65535, description="port of the gRPC endpoint; 0 takes a free one")] = 8001
    host: Annotated[str | None, Meta(description="address to listen on, where it is not the server's")] = None
    reuse_port: Annotated[bool, Meta(description="share the port with other servers on this machine")] = False
    max_response_pool_size: Annotated[
        int, Meta(ge=1, description="answers of one decoupled request that may wait for a slow client")
    ] = 1024


class GrpcFrontend(Frontend):
    """Serves the inference protocol, grpc.health.v1 and reflection on one port, without transport security.

    Messages may have any size that protobuf can carry (2 GiB).
    """

    Options = GrpcOptions

    def __init__(self, options: GrpcOptions, context: FrontendContext) -> None:
        super().__init__(options, context)
        self._host = options.host or context.host
        self._address = ""
        self._server: grpc.aio.Server
        self._service: InferenceService
        self._health: Health

    async def start(self, engine: Engine) -> None:
        """Listen."""
        options: GrpcOptions = self.options
        self._service = InferenceService(engine, options.max_response_pool_size, self.context.log)
        self._health = Health(engine)
        self._server = grpc.aio.server(handlers=(self._service.handler(),), options=_channel_options(options))
        health_pb2_grpc.add_HealthServicer_to_server(self._health, self._server)
        add_reflection(self._server)
        self._address = _bound(self._server, self._host, options)
        await self._server.start()

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

    def address(self) -> str:
        """Where clients reach it."""
        return self._address


def _channel_options(options: GrpcOptions) -> list[tuple[str, Any]]:
    return [
        ("grpc.max_send_message_length", -1),
        ("grpc.max_receive_message_length", -1),
        ("grpc.so_reuseport", int(options.reuse_port)),
    ]


def _bound(server: grpc.aio.Server, host: str, options: GrpcOptions) -> str:
    name = f"[{host}]" if ":" in host else host
    try:
        _try_out(host, options)
        port = server.add_insecure_port(f"{name}:{options.port}")
    except (OSError, RuntimeError) as error:
        reason = getattr(error, "strerror", None) or error
        raise StartupError(
            f"the gRPC frontend cannot listen on {name}:{options.port}: {reason}. "
            "Stop what listens there, or choose another `port` or `host` under `frontends: grpc:`"
        ) from error
    return f"{name}:{port}"


def _try_out(host: str, options: GrpcOptions) -> None:
    """Bind a plain socket first: grpc itself keeps the reason to itself and prints on stderr. Raises OSError."""
    refusal: OSError | None = None
    for family, kind, protocol, _, address in socket.getaddrinfo(host, options.port, type=socket.SOCK_STREAM):
        with socket.socket(family, kind, protocol) as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            if options.reuse_port:
                probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
            try:
                probe.bind(address)
            except OSError as error:
                refusal = error
            else:
                return  # grpc too is content with one of a name's addresses
    if refusal is not None:
        raise refusal
