"""The methods of the server by path, except ModelInfer."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import TYPE_CHECKING, Any

from google.protobuf.message import DecodeError, Message
from grpc_health.v1 import health_pb2
from grpc_reflection.v1alpha import reflection_pb2

from tritonpy import InvalidArgument, Unsupported
from tritonpy_frontend_grpc.decompression import SMALL_LIMIT, decompress
from tritonpy_frontend_grpc.management import MANAGEMENT
from tritonpy_protos import METHODS, Method

if TYPE_CHECKING:
    from tritonpy_frontend_grpc.call import GrpcCall, StreamingCall
    from tritonpy_frontend_grpc.h2.task_call import H2TaskCall
    from tritonpy_frontend_grpc.health import Health
    from tritonpy_frontend_grpc.load_stream import LoadStream
    from tritonpy_frontend_grpc.service import InferenceService

MANAGEMENT_BYTES = 1024 * 1024
"""Largest message of a management call. A load, which may contain files, is exempt."""
Run = Callable[["H2TaskCall"], Awaitable[None]]

_HEALTH = health_pb2.DESCRIPTOR.services_by_name["Health"].full_name
_REFLECTION = reflection_pb2.DESCRIPTOR.services_by_name["ServerReflection"].full_name


def make_methods(service: InferenceService, health: Health) -> dict[str, Run]:
    """Return all methods of the inference, health and reflection services except ModelInfer."""
    own = {
        method.path: run
        for method in METHODS
        if (run := _inference_method(service, method)) is not None
    }
    if service.load_stream is not None:
        from tritonpy_frontend_grpc.load_stream import ORCA_SERVICE, STREAM_METHOD

        own[f"/{ORCA_SERVICE}/{STREAM_METHOD}"] = _load_stream(service.load_stream)
    return own | {
        f"/{_HEALTH}/Check": _health_check(health),
        f"/{_HEALTH}/Watch": _health_watch(health),
        f"/{_REFLECTION}/ServerReflectionInfo": _ReflectionCall(),
    }


async def unknown(_exchange: H2TaskCall) -> None:
    """Raise Unsupported: the method does not exist."""
    raise Unsupported("Method not found!")


def _inference_method(service: InferenceService, method: Method) -> Run | None:
    if method.name == "ModelStreamInfer":
        return _stream_call(service.stream, service.max_message)
    if method.name not in MANAGEMENT:
        return None
    files = method.name == "RepositoryModelLoad"  # a load may have a large message
    return _management_call(
        service.management(method), service.max_message if files else MANAGEMENT_BYTES
    )


def _management_call(handler: Callable[[bytes, GrpcCall], Awaitable[Message]], limit: int) -> Run:
    async def run(call: H2TaskCall) -> None:
        call.limit_messages(limit)
        message = await handler(await call.message(), call)
        await call.respond(message.SerializeToString())

    return run


def _stream_call(serve: Callable[[StreamingCall], Awaitable[None]], limit: int) -> Run:
    async def run(call: H2TaskCall) -> None:
        call.limit_messages(limit)
        await serve(call)
        await call.finish()

    return run


def _health_check(health: Health) -> Run:
    async def run(call: H2TaskCall) -> None:
        request = _parse(health_pb2.HealthCheckRequest, await call.message())
        await call.respond((await health.Check(request, None)).SerializeToString())

    return run


def _health_watch(health: Health) -> Run:
    async def run(call: H2TaskCall) -> None:
        request = _parse(health_pb2.HealthCheckRequest, await call.message())
        await _write_all(call, health.Watch(request, None))

    return run


def _load_stream(stream: LoadStream) -> Run:
    async def run(call: H2TaskCall) -> None:
        request = decompress(await call.message(), SMALL_LIMIT)
        async for report in stream.reports(request):
            await call.write(report)
        await call.finish()

    return run


class _ReflectionCall:
    """Reflection from the library, which is imported, with grpcio, at the first call."""

    def __init__(self) -> None:
        self._servicer: Any = None

    async def __call__(self, call: H2TaskCall) -> None:
        if self._servicer is None:
            self._servicer = await asyncio.to_thread(_reflection_servicer)
        await _write_all(
            call, self._servicer.ServerReflectionInfo(_reflection_requests(call), None)
        )


def _reflection_servicer() -> Any:
    from tritonpy_frontend_grpc.reflection import reflection_servicer

    return reflection_servicer()


async def _reflection_requests(call: H2TaskCall) -> AsyncIterator[Any]:
    while (raw := await call.read()) is not None:
        yield _parse(reflection_pb2.ServerReflectionRequest, raw)


async def _write_all(call: H2TaskCall, messages: AsyncIterator[Message]) -> None:
    async for message in messages:
        await call.write(message.SerializeToString())
    await call.finish()


def _parse(kind: Any, raw: bytes) -> Any:
    try:
        return kind.FromString(decompress(raw, SMALL_LIMIT))
    except DecodeError:
        raise InvalidArgument(
            f"unable to parse the request: its {len(raw)} bytes are not a valid message"
        ) from None
