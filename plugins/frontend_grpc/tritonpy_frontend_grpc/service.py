"""The RPCs of the inference service on grpc.aio."""

from __future__ import annotations

import asyncio
import logging
from typing import Any, NoReturn

import grpc
from google.protobuf.message import Message

from tritonpy import (
    DecoupledRefused,
    Engine,
    InferRequest,
    InferResponse,
    LoopSink,
    TritonError,
    Unavailable,
    Unsupported,
    incident,
)
from tritonpy_frontend_grpc.decode import decode_request
from tritonpy_frontend_grpc.encode import encode_response
from tritonpy_frontend_grpc.gate import Gate
from tritonpy_frontend_grpc.management import BLOCKING, MANAGEMENT
from tritonpy_frontend_grpc.message import parse_message
from tritonpy_frontend_grpc.status import SHUTTING_DOWN, STATUS, status_text
from tritonpy_frontend_grpc.stream import Slot, Stream
from tritonpy_frontend_grpc.stream_call import StreamCall
from tritonpy_protos import METHODS, SERVICE, Method
from tritonpy_protos.grpc_service_pb2 import ModelInferRequest

Context = grpc.aio.ServicerContext[Any, Any]

_BY_NUMBER = {status.value[0]: status for status in grpc.StatusCode}
_STATUS = {code: _BY_NUMBER[number] for code, number in STATUS.items()}


class StreamSink(LoopSink):
    """Delivers the answers of streams, and tells their producers when to pause."""

    def put(self, request: InferRequest, response: InferResponse) -> None:
        request.tag.put_in += 1
        super().put(request, response)

    def ready(self, request: InferRequest) -> bool:
        return bool(request.tag.stream.has_room(request.tag))


class InferenceService:
    """Serves `engine` on the running event loop; `max_waiting` bounds the unsent answers of a decoupled request."""

    def __init__(self, engine: Engine, max_waiting: int, log: logging.Logger) -> None:
        self._engine = engine
        self._max_waiting = max_waiting
        self._log = log
        self._loop = asyncio.get_running_loop()
        self._gate = Gate()
        self._sink = LoopSink(self._loop, _resolve)
        self._stream_sink = StreamSink(self._loop, self._deliver)
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
        function, blocking = MANAGEMENT[method.name], method.name in BLOCKING

        async def call(raw: bytes, context: Context) -> Message:
            try:
                message = parse_message(method.request, raw)
                if blocking:
                    return await asyncio.to_thread(function, self._engine, message)
                return function(self._engine, message)
            except Exception as error:
                failure = self._failure(error)
            return await _abort(context, failure)

        return grpc.unary_unary_rpc_method_handler(call, None, method.response.SerializeToString)

    async def _infer(self, raw: bytes, context: Context) -> bytes:
        if self._gate.closed:
            await _abort(context, Unavailable(SHUTTING_DOWN))
        self._gate.enter()
        try:
            response = await self._answer(raw)
            if response.error is None:
                return encode_response(response)
            failure = response.error
        except Exception as error:
            failure = self._failure(error)
        finally:
            self._gate.leave()
        return await _abort(context, failure)

    async def _answer(self, raw: bytes) -> InferResponse:
        request = decode_request(parse_message(ModelInferRequest, raw), self._sink)
        answer: asyncio.Future[InferResponse] = self._loop.create_future()
        request.tag = answer
        try:
            self._engine.infer(request)
        except DecoupledRefused:
            text = "ModelInfer RPC doesn't support models with decoupled transaction policy"
            raise Unsupported(text) from None
        try:
            return await answer
        except asyncio.CancelledError:  # the client went away, or its deadline passed
            request.cancel()
            raise

    async def _stream(self, _messages: object, context: Context) -> None:
        ends_on_error = ("triton_grpc_error", "true") in (context.invocation_metadata() or ())
        call = StreamCall(context, self._take, self._max_waiting, ends_on_error)
        self._calls.add(call)
        try:
            error = await call.run()
        finally:
            self._calls.discard(call)
        if error is not None:
            await _abort(context, error)

    def _take(self, stream: Stream, raw: bytes) -> None:
        slot = Slot(stream)
        try:
            message = parse_message(ModelInferRequest, raw)
            slot.describe(message)
            if self._gate.closed:
                raise Unavailable(SHUTTING_DOWN)  # noqa: TRY301  it is answered like every other refusal
            stream.take(slot, decode_request(message, self._stream_sink), self._engine)
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


async def _abort(context: Context, error: TritonError) -> NoReturn:
    await context.abort(_STATUS[error.code], status_text(error.message))
