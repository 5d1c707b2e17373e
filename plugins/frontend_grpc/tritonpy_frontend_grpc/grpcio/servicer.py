"""Handlers that connect the inference service to grpc.aio."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NoReturn

import grpc
from google.protobuf.message import Message

from tritonpy import TritonError
from tritonpy.frontend import RequestMemory, Reservation
from tritonpy_frontend_grpc.grpcio.aio_call import AioCall, AioInferCall, Context, call_when_done
from tritonpy_frontend_grpc.grpcio.aio_compression import CompressionSettings, compress
from tritonpy_frontend_grpc.management import MANAGEMENT
from tritonpy_frontend_grpc.service import InferenceService
from tritonpy_frontend_grpc.status import rpc_status
from tritonpy_load_reports.report import GRPC_METADATA
from tritonpy_protos import METHODS, SERVICE, Method

if TYPE_CHECKING:
    from tritonpy_frontend_grpc.load_stream import LoadStream

_STATUS_BY_NUMBER = {status.value[0]: status for status in grpc.StatusCode}


def make_handler(
    service: InferenceService, compression: CompressionSettings
) -> grpc.GenericRpcHandler[Any, Any]:
    """Return the handler for all methods of `service` on a grpc.aio server."""
    handlers: dict[str, grpc.RpcMethodHandler[Any, Any]] = {}
    for method in METHODS:
        # No (de)serializers of grpc: invalid messages get a proper error, and responses are bytes
        # already.
        if method.name == "ModelInfer":
            handlers[method.name] = grpc.unary_unary_rpc_method_handler(
                _infer(service, compression)
            )
        elif method.name == "ModelStreamInfer":
            handlers[method.name] = grpc.stream_stream_rpc_method_handler(
                _stream(service, compression)
            )
        elif method.name in MANAGEMENT:
            handlers[method.name] = _management(service, method)
    return grpc.method_handlers_generic_handler(SERVICE, handlers)


def make_load_handler(stream: LoadStream) -> grpc.GenericRpcHandler[Any, Any]:
    """Return the handler for load reports on a grpc.aio server."""
    from tritonpy_frontend_grpc.load_stream import ORCA_SERVICE, STREAM_METHOD

    async def call(raw: bytes, context: Context) -> None:
        try:
            async for report in stream.reports(raw):
                await context.write(report)
        except TritonError as error:
            await abort(context, error)

    handlers = {STREAM_METHOD: grpc.unary_stream_rpc_method_handler(call)}
    return grpc.method_handlers_generic_handler(ORCA_SERVICE, handlers)


def _infer(
    service: InferenceService, compression: CompressionSettings
) -> Callable[[bytes, Context], Any]:
    infer, algorithm, create_future = (
        service.infer,
        compression.response_algorithm,
        asyncio.get_running_loop().create_future,
    )

    async def call(raw: bytes, context: Context) -> bytes:
        outcome = create_future()
        begun = AioInferCall(context, outcome)
        if len(raw) > RequestMemory.UNCOUNTED:
            begun.memory = await _reserved(service.memory, context, len(raw))
        infer(raw, begun)
        try:
            result: bytes | TritonError = await outcome
        except asyncio.CancelledError:  # the client disconnected or the deadline passed
            service.cancel(begun)
            raise
        if isinstance(result, TritonError):
            del (
                raw,
                begun,
                outcome,
            )  # grpc keeps the frames of an aborted call until garbage collection
            await abort(context, result)
        if algorithm is not None:
            await compress(context, algorithm)
        if service.note_response is not None:
            service.note_response()
            if service.load_report:
                context.set_trailing_metadata(((GRPC_METADATA, service.load_report),))
        if len(result) > RequestMemory.UNCOUNTED:  # grpc buffers it until the client reads
            unsent = await _reserved(service.memory, context, len(result))
            call_when_done(context, unsent.shrink)
        return result

    return call


async def _reserved(memory: RequestMemory, context: Context, nbytes: int) -> Reservation:
    """Return a reservation for a message, or abort the call if the request memory is full."""
    reservation = memory.client().reservation()
    if not reservation.grow(nbytes):
        await abort(context, memory.refusal(nbytes))
    return reservation


def _stream(
    service: InferenceService, compression: CompressionSettings
) -> Callable[[object, Context], Any]:
    async def call(_messages: object, context: Context) -> None:
        if compression.response_algorithm is not None:
            await compress(context, compression.response_algorithm)
        try:
            await service.stream(AioCall(context))
        except TritonError as error:
            await abort(context, error)

    return call


def _management(service: InferenceService, method: Method) -> grpc.RpcMethodHandler[Any, Any]:
    handler = service.management(method)

    async def call(raw: bytes, context: Context) -> Message:
        try:
            return await handler(raw, AioCall(context))
        except TritonError as error:
            del raw
            await abort(context, error)

    return grpc.unary_unary_rpc_method_handler(call, None, method.response.SerializeToString)


async def abort(context: Context, error: TritonError) -> NoReturn:
    """Abort a call with an error."""
    status, text, trailers = rpc_status(error)
    await context.abort(_STATUS_BY_NUMBER[status], text, trailers)
