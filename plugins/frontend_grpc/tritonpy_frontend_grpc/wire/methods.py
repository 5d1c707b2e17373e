"""What each method of the server does with an exchange, by its path."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import TYPE_CHECKING, Any

from google.protobuf.message import DecodeError, Message
from grpc_health.v1 import health_pb2
from grpc_reflection.v1alpha import reflection_pb2

from tritonpy import InvalidArgument, Unsupported
from tritonpy_frontend_grpc.management import MANAGEMENT
from tritonpy_frontend_grpc.unpacking import SMALL, unpack
from tritonpy_protos import METHODS, Method

if TYPE_CHECKING:
    from tritonpy_frontend_grpc.call import Call, StreamingCall
    from tritonpy_frontend_grpc.health import Health
    from tritonpy_frontend_grpc.service import InferenceService
    from tritonpy_frontend_grpc.wire.exchange import Exchange

MANAGEMENT_BYTES = 1024 * 1024
"""Longest message of a management call but a load, which may hold the files of a model."""
Run = Callable[["Exchange"], Awaitable[None]]

_HEALTH = health_pb2.DESCRIPTOR.services_by_name["Health"].full_name
_REFLECTION = reflection_pb2.DESCRIPTOR.services_by_name["ServerReflection"].full_name


def methods_of(service: InferenceService, health: Health) -> dict[str, Run]:
    """Return every method of the three services, inference, health and reflection, but ModelInfer, which has a way of its own."""
    own = {method.path: run for method in METHODS if (run := _own(service, method)) is not None}
    return own | {
        f"/{_HEALTH}/Check": _checking(health),
        f"/{_HEALTH}/Watch": _watching(health),
        f"/{_REFLECTION}/ServerReflectionInfo": _Reflecting(),
    }


async def unknown(_exchange: Exchange) -> None:
    """Do what a method does that does not exist."""
    raise Unsupported("Method not found!")


def _own(service: InferenceService, method: Method) -> Run | None:
    if method.name == "ModelStreamInfer":
        return _streaming(service.stream, service.max_message)
    if method.name not in MANAGEMENT:
        return None
    files = method.name == "RepositoryModelLoad"  # which may be large
    return _managing(service.management(method), service.max_message if files else MANAGEMENT_BYTES)


def _managing(answer: Callable[[bytes, Call], Awaitable[Message]], limit: int) -> Run:
    async def run(exchange: Exchange) -> None:
        exchange.limit_messages(limit)
        message = await answer(await exchange.message(), exchange)
        await exchange.answer(message.SerializeToString())

    return run


def _streaming(serve: Callable[[StreamingCall], Awaitable[None]], limit: int) -> Run:
    async def run(exchange: Exchange) -> None:
        exchange.limit_messages(limit)
        await serve(exchange)
        await exchange.finish()

    return run


def _checking(health: Health) -> Run:
    async def run(exchange: Exchange) -> None:
        asked = _parsed(health_pb2.HealthCheckRequest, await exchange.message())
        await exchange.answer((await health.Check(asked, None)).SerializeToString())

    return run


def _watching(health: Health) -> Run:
    async def run(exchange: Exchange) -> None:
        asked = _parsed(health_pb2.HealthCheckRequest, await exchange.message())
        await _write_all(exchange, health.Watch(asked, None))

    return run


class _Reflecting:
    """Reflection is its library's; it and all of grpcio are imported by the first who asks."""

    def __init__(self) -> None:
        self._servicer: Any = None

    async def __call__(self, exchange: Exchange) -> None:
        if self._servicer is None:
            self._servicer = await asyncio.to_thread(_reflection_servicer)
        await _write_all(exchange, self._servicer.ServerReflectionInfo(_asked(exchange), None))


def _reflection_servicer() -> Any:
    from tritonpy_frontend_grpc.reflection import reflection_servicer

    return reflection_servicer()


async def _asked(exchange: Exchange) -> AsyncIterator[Any]:
    while (raw := await exchange.read()) is not None:
        yield _parsed(reflection_pb2.ServerReflectionRequest, raw)


async def _write_all(exchange: Exchange, messages: AsyncIterator[Message]) -> None:
    async for message in messages:
        await exchange.write(message.SerializeToString())
    await exchange.finish()


def _parsed(kind: Any, raw: bytes) -> Any:
    try:
        return kind.FromString(unpack(raw, SMALL))
    except DecodeError:
        raise InvalidArgument(f"unable to parse the request: its {len(raw)} bytes are not its message") from None
