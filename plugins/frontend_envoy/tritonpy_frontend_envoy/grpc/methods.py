"""What each method of the server does with an exchange, by its path."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from typing import TYPE_CHECKING, Any

from google.protobuf.message import DecodeError, Message
from grpc_health.v1.health_pb2_grpc import add_HealthServicer_to_server

from tritonpy import InvalidArgument, Unsupported
from tritonpy_frontend_grpc.management import MANAGEMENT
from tritonpy_frontend_grpc.packing import SMALL, unpack
from tritonpy_frontend_grpc.reflection import add_reflection
from tritonpy_protos import METHODS, Method

if TYPE_CHECKING:
    from tritonpy_frontend_envoy.grpc.exchange import Exchange
    from tritonpy_frontend_grpc.call import Call, StreamingCall
    from tritonpy_frontend_grpc.health import Health
    from tritonpy_frontend_grpc.service import InferenceService

Run = Callable[["Exchange"], Awaitable[None]]


def methods_of(service: InferenceService, health: Health) -> dict[str, Run]:
    """Return every method of the three services, inference, health and reflection, but ModelInfer, which has a way of its own."""
    libraries = _Libraries()
    add_HealthServicer_to_server(health, libraries)
    add_reflection(libraries)
    own = {method.path: run for method in METHODS if (run := _own(service, method)) is not None}
    return own | libraries.methods


async def unknown(_exchange: Exchange) -> None:
    """Do what a method does that does not exist."""
    raise Unsupported("Method not found!")


def _own(service: InferenceService, method: Method) -> Run | None:
    if method.name == "ModelStreamInfer":
        return _streaming(service.stream)
    return _managing(service.management(method)) if method.name in MANAGEMENT else None


def _managing(answer: Callable[[bytes, Call], Awaitable[Message]]) -> Run:
    async def run(exchange: Exchange) -> None:
        message = await answer(await exchange.message(), exchange)
        await exchange.answer(message.SerializeToString())

    return run


def _streaming(serve: Callable[[StreamingCall], Awaitable[None]]) -> Run:
    async def run(exchange: Exchange) -> None:
        await serve(exchange)
        await exchange.finish()

    return run


class _Libraries:
    """Stands for a server where a library adds its services. What they do is awaited or iterated; none of them asks for a context."""

    def __init__(self) -> None:
        self.methods: dict[str, Run] = {}

    def add_generic_rpc_handlers(self, handlers: object) -> None:
        """Take no note: the same methods come by their names."""

    def add_registered_method_handlers(self, service: str, handlers: dict[str, Any]) -> None:
        """Add the methods of a service."""
        for name, handler in handlers.items():
            self.methods[f"/{service}/{name}"] = _library_method(handler)


def _library_method(handler: Any) -> Run:
    def parsed(raw: bytes) -> Any:
        try:
            return handler.request_deserializer(unpack(raw, SMALL))
        except DecodeError:
            raise InvalidArgument(f"unable to parse the request: its {len(raw)} bytes are not its message") from None

    async def asked(exchange: Exchange) -> AsyncIterator[Any]:
        while (raw := await exchange.read()) is not None:
            yield parsed(raw)

    async def once(exchange: Exchange) -> None:
        message = await handler.unary_unary(parsed(await exchange.message()), None)
        await exchange.answer(handler.response_serializer(message))

    async def many(exchange: Exchange) -> None:
        streaming = handler.request_streaming
        given = asked(exchange) if streaming else parsed(await exchange.message())
        answers = (handler.stream_stream if streaming else handler.unary_stream)(given, None)
        async for message in answers:
            await exchange.write(handler.response_serializer(message))
        await exchange.finish()

    return many if handler.response_streaming else once
