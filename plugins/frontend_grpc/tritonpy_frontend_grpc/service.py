"""The RPCs of the inference service, as functions of a call and its messages. Knows no transport."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from functools import partial
from typing import TYPE_CHECKING

from google.protobuf.message import Message

from tritonpy import (
    LOAD_CALLS,
    MODEL_CALLS,
    DecoupledRefused,
    Engine,
    InferRequest,
    InferResponse,
    LoopSink,
    RequestMemory,
    Reservation,
    Sink,
    StreamSink,
    Tracer,
    TritonError,
    Unavailable,
    Unsupported,
    incident,
    now_ns,
)
from tritonpy_frontend_grpc.answering import NO_DECOUPLED, AnswerSink
from tritonpy_frontend_grpc.decode import decode_request
from tritonpy_frontend_grpc.gate import Gate
from tritonpy_frontend_grpc.known_layouts import KnownLayouts
from tritonpy_frontend_grpc.management import BLOCKING, MANAGEMENT, model_ready_or_error
from tritonpy_frontend_grpc.message import parse_message
from tritonpy_frontend_grpc.parameters import wants_empty_final
from tritonpy_frontend_grpc.status import SHUTTING_DOWN
from tritonpy_frontend_grpc.stream import Slot, Stream, Window
from tritonpy_frontend_grpc.stream_call import StreamCall
from tritonpy_frontend_grpc.tracing import StreamTrace, end_with_call, sample
from tritonpy_frontend_grpc.unpacking import INLINE_BELOW, LIMIT, PACKED, unpack, unpacked
from tritonpy_protos import Method
from tritonpy_protos.grpc_service_pb2 import ModelInferRequest

if TYPE_CHECKING:
    from tritonpy_frontend_grpc.access import GrpcAccess
    from tritonpy_frontend_grpc.call import Call, InferCall, Metadata, StreamingCall

_UNPACKING = 2  # messages that are unpacked at a time: what becomes of all others is small until then


class InferenceService:
    """Serves `engine` on the running event loop; `window` bounds the unsent answers of a decoupled request.

    Messages come as their bytes, compressed or not; one that is compressed may become `limit` bytes. What ends a call is raised, as a
    TritonError and nothing else.
    """

    def __init__(
        self,
        engine: Engine,
        window: Window,
        log: logging.Logger,
        access: GrpcAccess | None = None,
        limit: int = LIMIT,
        tracer: Tracer | None = None,
        memory: RequestMemory | None = None,
        max_message: int = 0,
    ) -> None:
        self.memory = memory or RequestMemory()
        self.max_message = max_message
        self.unchecked = min(
            RequestMemory.UNCOUNTED, max_message or RequestMemory.UNCOUNTED
        )  # nothing to ask up to here
        self._unpacking = asyncio.Semaphore(_UNPACKING)
        self.model_ready_errors = False  # ModelReady of an unknown model is an error
        self._engine = engine
        self._limit = limit
        self._access = access
        self._tracer = tracer or Tracer()
        self._window = window
        self._log = log
        self._loop = asyncio.get_running_loop()
        self._gate = Gate()
        self._layouts = KnownLayouts()
        self._sink = AnswerSink(self._loop, self._end, self._failure)
        self._stream_sink = LoopSink(self._loop, self._deliver)
        self._decoupled_sink = StreamSink(self._loop, self._deliver)
        self._calls: set[StreamCall] = set()
        self._tasks: set[asyncio.Task[None]] = set()

    async def drain(self) -> None:
        """Refuse inference from now on; return when what was accepted is answered."""
        await self._gate.close()

    def close(self) -> None:
        """End the streams that clients keep open, once they have what was answered."""
        for call in self._calls:
            call.close()

    def management(self, method: Method) -> Callable[[bytes, Call], Awaitable[Message]]:
        """Return what answers a method of `MANAGEMENT`."""
        function, blocking, access = MANAGEMENT[method.name], method.name in BLOCKING, self._access
        if method.name == "ModelReady" and self.model_ready_errors:
            function = model_ready_or_error
        threads = LOAD_CALLS if method.name == "RepositoryModelLoad" else MODEL_CALLS

        async def answer(raw: bytes, call: Call) -> Message:
            memory = self.memory.client().reservation()  # as long as the call is worked on
            if len(raw) > RequestMemory.UNCOUNTED:
                memory.require(len(raw))
            if raw[:1] in PACKED:
                raw = await self._unpacked(raw, memory)
            message = parse_message(method.request, raw)
            if access is not None:
                access.admit(method.path, call.metadata(), message)
            if blocking:
                return await threads.run(function, self._engine, message)
            return function(self._engine, message)

        async def checked(raw: bytes, call: Call) -> Message:
            try:
                return await answer(raw, call)
            except Exception as error:
                raise self._failure(error) from None

        return checked

    def infer(self, raw: bytes, call: InferCall) -> None:
        """Answer ModelInfer: `call.finish` gets the answer or an error, before or after this returns, unless it is cancelled."""
        if self._gate.closed:
            call.finish(Unavailable(SHUTTING_DOWN))
            return
        self._gate.enter()
        if raw[:1] in PACKED:
            unpacking = self._loop.create_task(self._infer_packed(raw, call))
            self._tasks.add(unpacking)
            unpacking.add_done_callback(self._tasks.discard)
        else:
            self._begin(raw, call)

    def cancel(self, call: InferCall) -> None:
        """Cancel a call that was given to `infer`: nobody waits for its answer any more. Does nothing where it is over."""
        if not call.over:
            call.over = True
            self._gate.leave()
            if call.request is not None:
                call.request.cancel()
                call.request = None

    async def _infer_packed(self, raw: bytes, call: InferCall) -> None:
        if call.memory is None:
            call.memory = (call.account() or self.memory.client()).reservation()
        try:
            plain = await self._unpacked(raw, call.memory)
        except Exception as error:
            self._end(call, self._failure(error))
        else:
            if not call.over:
                self._begin(plain, call)

    async def _unpacked(self, raw: bytes, memory: Reservation) -> bytes:
        if len(raw) < INLINE_BELOW:
            return unpack(raw, self._limit, memory)
        async with self._unpacking:
            return await unpacked(raw, self._limit, memory)

    def _begin(self, raw: bytes, call: InferCall) -> None:
        arrived = now_ns() if self._tracer.active else 0
        try:
            request = self._decoded(raw, call)
            request.tag = call
            request.deadline_ns = call.deadline_ns()
            if arrived and (trace := sample(self._tracer, request, call.metadata(), arrived)):
                end_with_call(trace, call)
            call.request = request
            self._engine.infer(request)
        except DecoupledRefused:
            self._end(call, Unsupported(NO_DECOUPLED))
        except Exception as error:
            self._end(call, self._failure(error))

    def _decoded(self, raw: bytes, call: InferCall) -> InferRequest:
        if self._access is not None:
            return self._access.decode(parse_message(ModelInferRequest, raw), self._sink, call.metadata())
        form = self._layouts.find(raw)
        request = None if form is None else form.request(raw, self._sink)
        return request or self._parsed(raw, parse_message(ModelInferRequest, raw), self._sink)

    def _parsed(self, raw: bytes, message: ModelInferRequest, sink: Sink) -> InferRequest:
        request = decode_request(message, sink)
        self._layouts.learn(raw, message, request)
        return request

    def _end(self, call: InferCall, answer: bytes | TritonError) -> None:
        if not call.over:
            call.over = True
            call.request = None  # it names the call: undone here, its buffers need not wait for the collector
            self._gate.leave()
            call.finish(answer)

    async def stream(self, call: StreamingCall) -> None:
        """Answer ModelStreamInfer until the client is done and everything is answered."""
        metadata = call.metadata()
        ends_on_error = ("triton_grpc_error", "true") in metadata
        take, take_now = partial(self._take, metadata), partial(self._take_now, metadata)
        account = call.account() or self.memory.client()
        stream = StreamCall(call, take, take_now, self._window, ends_on_error, account)
        self._calls.add(stream)
        try:
            error = await stream.run()
        except Exception as bug:
            raise self._failure(bug) from None
        finally:
            self._calls.discard(stream)
        if error is not None:
            raise error

    def _take(self, metadata: Metadata, stream: Stream, raw: bytes) -> Awaitable[None] | None:
        if raw[:1] in PACKED:
            return self._take_packed(metadata, stream, raw)
        self._take_plain(metadata, stream, raw)
        return None

    def _take_now(self, metadata: Metadata, stream: Stream, raw: bytes) -> bool:
        if raw[:1] in PACKED:
            return False
        self._take_plain(metadata, stream, raw)
        return True

    async def _take_packed(self, metadata: Metadata, stream: Stream, raw: bytes) -> None:
        try:
            memory = stream.account.reservation()
            plain = await self._unpacked(raw, memory)
        except TritonError as error:
            stream.refused(Slot(stream), error)
        else:
            self._take_plain(metadata, stream, plain)

    def _take_plain(self, metadata: Metadata, stream: Stream, raw: bytes) -> None:
        slot = Slot(stream)
        arrived = now_ns() if self._tracer.active else 0
        try:
            stream.reserve(slot, len(raw))
            request = self._streamed(metadata, slot, raw)
            if arrived and (trace := sample(self._tracer, request, metadata, arrived)):
                slot.trace = StreamTrace(trace)
            stream.take(slot, request, self._engine, self._decoupled_sink)
        except Exception as error:
            stream.refused(slot, self._failure(error))
        else:
            self._gate.enter()

    def _streamed(self, metadata: Metadata, slot: Slot, raw: bytes) -> InferRequest:
        form = self._layouts.find(raw) if self._access is None and not self._gate.closed else None
        request = None if form is None else form.request(raw, self._stream_sink)
        if form is not None and request is not None:
            slot.describe(request.id, request.model_name, form.layout.version_text, form.layout.empty_final)
            return request
        message = parse_message(ModelInferRequest, raw)
        slot.describe(message.id, message.model_name, message.model_version, wants_empty_final(message.parameters))
        if self._gate.closed:
            raise Unavailable(SHUTTING_DOWN)
        if self._access is not None:
            return self._access.decode(message, self._stream_sink, metadata)
        return self._parsed(raw, message, self._stream_sink)

    def _deliver(self, request: InferRequest, response: InferResponse) -> None:
        request.tag.stream.answered(request.tag, response)
        if response.final:
            self._gate.leave()

    def _failure(self, error: Exception) -> TritonError:
        return error if isinstance(error, TritonError) else incident(self._log, "a call", error)
