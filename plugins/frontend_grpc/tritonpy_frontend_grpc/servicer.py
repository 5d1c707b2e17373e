"""The inference service on grpc.aio: a thin shell, one for each call."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any, NoReturn

import grpc
from google.protobuf.message import Message

from tritonpy import RequestMemory, Reservation, TritonError
from tritonpy_frontend_grpc.aio_call import AioCall, AioInferCall, Context, call_when_done
from tritonpy_frontend_grpc.management import MANAGEMENT
from tritonpy_frontend_grpc.packing import Packing, compress
from tritonpy_frontend_grpc.service import InferenceService
from tritonpy_frontend_grpc.status import outcome
from tritonpy_protos import METHODS, SERVICE, Method

_BY_NUMBER = {status.value[0]: status for status in grpc.StatusCode}


def handler_of(service: InferenceService, packing: Packing) -> grpc.GenericRpcHandler[Any, Any]:
    """Return what a grpc.aio server dispatches the calls of `service` to."""
    handlers: dict[str, grpc.RpcMethodHandler[Any, Any]] = {}
    for method in METHODS:
        # Without (de)serializers of grpc's: what is no message gets a proper answer, and answers are bytes already.
        if method.name == "ModelInfer":
            handlers[method.name] = grpc.unary_unary_rpc_method_handler(_infer(service, packing))
        elif method.name == "ModelStreamInfer":
            handlers[method.name] = grpc.stream_stream_rpc_method_handler(_stream(service, packing))
        elif method.name in MANAGEMENT:
            handlers[method.name] = _management(service, method)
    return grpc.method_handlers_generic_handler(SERVICE, handlers)


def _infer(service: InferenceService, packing: Packing) -> Callable[[bytes, Context], Any]:
    infer, algorithm, create_future = service.infer, packing.answers, asyncio.get_running_loop().create_future

    async def call(raw: bytes, context: Context) -> bytes:
        outcome = create_future()
        begun = AioInferCall(context, outcome)
        if len(raw) > RequestMemory.UNCOUNTED:
            begun.memory = await _reserved(service.memory, context, len(raw))
        infer(raw, begun)
        try:
            answer: bytes | TritonError = await outcome
        except asyncio.CancelledError:  # the client went away, or its deadline passed
            service.cancel(begun)
            raise
        if isinstance(answer, TritonError):
            del raw, begun, outcome  # grpc keeps the frames of an aborted call until the collector runs
            await abort(context, answer)
        if algorithm is not None:
            await compress(context, algorithm)
        if len(answer) > RequestMemory.UNCOUNTED:  # it waits in the library until the client reads
            unsent = await _reserved(service.memory, context, len(answer))
            call_when_done(context, unsent.shrink)
        return answer

    return call


async def _reserved(memory: RequestMemory, context: Context, nbytes: int) -> Reservation:
    """Return memory for a message; if there is none, the call ends here."""
    reservation = memory.client().reservation()
    if not reservation.grow(nbytes):
        await abort(context, memory.refusal(nbytes))
    return reservation


def _stream(service: InferenceService, packing: Packing) -> Callable[[object, Context], Any]:
    async def call(_messages: object, context: Context) -> None:
        if packing.answers is not None:
            await compress(context, packing.answers)
        try:
            await service.stream(AioCall(context))
        except TritonError as error:
            await abort(context, error)

    return call


def _management(service: InferenceService, method: Method) -> grpc.RpcMethodHandler[Any, Any]:
    answer = service.management(method)

    async def call(raw: bytes, context: Context) -> Message:
        try:
            return await answer(raw, AioCall(context))
        except TritonError as error:
            del raw
            await abort(context, error)

    return grpc.unary_unary_rpc_method_handler(call, None, method.response.SerializeToString)


async def abort(context: Context, error: TritonError) -> NoReturn:
    """End a call with an error."""
    status, text, trailers = outcome(error)
    await context.abort(_BY_NUMBER[status], text, trailers)
