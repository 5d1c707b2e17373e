"""The RPCs of the inference service on grpc.aio."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable
from functools import partial
from typing import TYPE_CHECKING, Any, NoReturn

import grpc
from google.protobuf.message import Message

from tritonpy import (
    DecoupledRefused,
    Engine,
    InferRequest,
    InferResponse,
    LoopSink,
    ResourceExhausted,
    StreamSink,
    Tracer,
    TritonError,
    Unavailable,
    Unsupported,
    incident,
    now_ns,
)
from tritonpy_frontend_grpc.deadline import DeadlineExceeded, deadline_of, is_late
from tritonpy_frontend_grpc.decode import decode_request
from tritonpy_frontend_grpc.encode import encode_response
from tritonpy_frontend_grpc.gate import Gate
from tritonpy_frontend_grpc.management import BLOCKING, MANAGEMENT
from tritonpy_frontend_grpc.message import parse_message
from tritonpy_frontend_grpc.packing import PACKED, UNASKED, Packing, compress, unpacked
from tritonpy_frontend_grpc.status import SHUTTING_DOWN, STATUS, status_text
from tritonpy_frontend_grpc.stream import Slot, Stream, Window
from tritonpy_frontend_grpc.stream_call import StreamCall
from tritonpy_frontend_grpc.tracing import StreamTrace, end_with_call, sample
from tritonpy_protos import METHODS, SERVICE, Method
from tritonpy_protos.grpc_service_pb2 import ModelInferRequest

if TYPE_CHECKING:
    from tritonpy_frontend_grpc.access import GrpcAccess, Metadata

Context = grpc.aio.ServicerContext[Any, Any]

_BY_NUMBER = {status.value[0]: status for status in grpc.StatusCode}
_STATUS = {code: _BY_NUMBER[number] for code, number in STATUS.items()}


class InferenceService:
    """Serves `engine` on the running event loop; `window` bounds the unsent answers of a decoupled request."""

    def __init__(
        self,
        engine: Engine,
        window: Window,
        log: logging.Logger,
        access: GrpcAccess | None = None,
        packing: Packing = UNASKED,
        tracer: Tracer | None = None,
    ) -> None:
        self._engine = engine
        self._packing = packing
        self._access = access
        self._tracer = tracer or Tracer()
        self._window = window
        self._log = log
        self._loop = asyncio.get_running_loop()
        self._gate = Gate()
        self._sink = LoopSink(self._loop, _resolve)
        self._stream_sink = LoopSink(self._loop, self._deliver)
        self._decoupled_sink = StreamSink(self._loop, self._deliver)
        self._calls: set[StreamCall] = set()

    def handler(self) -> grpc.GenericRpcHandler[Any, Any]:
        """Return what a grpc.aio server dispatches the calls of this service to."""
        handlers: dict[str, grpc.RpcMethodHandler[Any, Any]] = {}
        for method in METHODS:
            # Without (de)serializers of grpc's: what is no message gets a proper answer, and answers are bytes already.
            if method.name == "ModelInfer":
                handlers[method.name] = grpc.unary_unary_rpc_method_handler(self._infer)
            elif method.name == "ModelStreamInfer":
                handlers[method.name] = grpc.stream_stream_rpc_method_handler(self._stream)
            elif method.name in MANAGEMENT:
                handlers[method.name] = self._management_handler(method)
        return grpc.method_handlers_generic_handler(SERVICE, handlers)

    async def drain(self) -> None:
        """Refuse inference from now on; return when what was accepted is answered."""
        await self._gate.close()

    def close(self) -> None:
        """End the streams that clients keep open, once they have what was answered."""
        for call in self._calls:
            call.close()

    def _management_handler(self, method: Method) -> grpc.RpcMethodHandler[Any, Any]:
        function, blocking, access = MANAGEMENT[method.name], method.name in BLOCKING, self._access

        async def answer(raw: bytes, context: Context) -> Message:
            if raw[:1] in PACKED:
                raw = await unpacked(raw, self._packing.limit)
            message = parse_message(method.request, raw)
            if access is not None:
                access.admit(method.path, context.invocation_metadata() or (), message)
            if blocking:
                return await asyncio.to_thread(function, self._engine, message)
            return function(self._engine, message)

        async def call(raw: bytes, context: Context) -> Message:
            try:
                return await answer(raw, context)
            except Exception as error:
                failure = self._failure(error)
            del raw  # grpc keeps the frames of an aborted call until the collector runs
            return await abort(context, failure)

        return grpc.unary_unary_rpc_method_handler(call, None, method.response.SerializeToString)

    async def _infer(self, raw: bytes, context: Context) -> bytes:
        if self._gate.closed:
            await abort(context, Unavailable(SHUTTING_DOWN))
        self._gate.enter()
        try:
            response = await self._answer(raw, context)
            if response.error is None:
                if self._packing.answers is not None:
                    await compress(context, self._packing.answers)
                return encode_response(response)
            failure = response.error
        except Exception as error:
            failure = self._failure(error)
        finally:
            self._gate.leave()
        del raw  # grpc keeps the frames of an aborted call until the collector runs
        return await abort(context, failure)

    async def _answer(self, raw: bytes, context: Context) -> InferResponse:
        arrived = now_ns() if self._tracer.active else 0
        if raw[:1] in PACKED:
            raw = await unpacked(raw, self._packing.limit)
        message = parse_message(ModelInferRequest, raw)
        request = (
            decode_request(message, self._sink)
            if self._access is None
            else self._access.decode(message, self._sink, context.invocation_metadata() or ())
        )
        answer: asyncio.Future[InferResponse] = self._loop.create_future()
        request.tag = answer
        request.deadline_ns = deadline_of(context)
        if arrived and (trace := sample(self._tracer, request, context.invocation_metadata() or (), arrived)):
            end_with_call(trace, context)
        try:
            self._engine.infer(request)
        except DecoupledRefused:
            text = "ModelInfer RPC doesn't support models with decoupled transaction policy"
            raise Unsupported(text) from None
        try:
            response = await answer
        except asyncio.CancelledError:  # the client went away, or its deadline passed
            request.cancel()
            raise
        if response.error is not None and is_late(request):
            raise DeadlineExceeded("Deadline Exceeded")
        if request.trace is not None:
            request.trace.stamp("GRPC_SEND_START")
        return response

    async def _stream(self, _messages: object, context: Context) -> None:
        metadata = context.invocation_metadata() or ()
        ends_on_error = ("triton_grpc_error", "true") in metadata
        if self._packing.answers is not None:
            await compress(context, self._packing.answers)
        call = StreamCall(context, partial(self._take, metadata), self._window, ends_on_error)
        self._calls.add(call)
        try:
            error = await call.run()
        finally:
            self._calls.discard(call)
        if error is not None:
            await abort(context, error)

    def _take(self, metadata: Metadata, stream: Stream, raw: bytes) -> Awaitable[None] | None:
        if raw[:1] in PACKED:
            return self._take_packed(metadata, stream, raw)
        self._take_plain(metadata, stream, raw)
        return None

    async def _take_packed(self, metadata: Metadata, stream: Stream, raw: bytes) -> None:
        try:
            plain = await unpacked(raw, self._packing.limit)
        except TritonError as error:
            stream.refused(Slot(stream), error)
        else:
            self._take_plain(metadata, stream, plain)

    def _take_plain(self, metadata: Metadata, stream: Stream, raw: bytes) -> None:
        slot = Slot(stream)
        arrived = now_ns() if self._tracer.active else 0
        try:
            message = parse_message(ModelInferRequest, raw)
            slot.describe(message)
            if self._gate.closed:
                raise Unavailable(SHUTTING_DOWN)  # noqa: TRY301  it is answered like every other refusal
            request = (
                decode_request(message, self._stream_sink)
                if self._access is None
                else self._access.decode(message, self._stream_sink, metadata)
            )
            if arrived and (trace := sample(self._tracer, request, metadata, arrived)):
                slot.trace = StreamTrace(trace)
            stream.take(slot, request, self._engine, self._decoupled_sink)
        except Exception as error:
            stream.refused(slot, self._failure(error))
        else:
            self._gate.enter()

    def _deliver(self, request: InferRequest, response: InferResponse) -> None:
        request.tag.stream.answered(request.tag, response)
        if response.final:
            self._gate.leave()

    def _failure(self, error: Exception) -> TritonError:
        return error if isinstance(error, TritonError) else incident(self._log, "a call", error)


def _resolve(request: InferRequest, response: InferResponse) -> None:
    if not request.tag.done():
        request.tag.set_result(response)


async def abort(context: Context, error: TritonError) -> NoReturn:
    """End a call with an error, which loses its traceback: its frames hold the request, and grpc would hold them."""
    error.__traceback__ = error.__context__ = error.__cause__ = None
    late = isinstance(error, DeadlineExceeded)
    status = grpc.StatusCode.DEADLINE_EXCEEDED if late else _STATUS[error.code]
    trailers = (("retry-after", error.retry_after),) if isinstance(error, ResourceExhausted) else ()
    await context.abort(status, status_text(error.message), trailers)
