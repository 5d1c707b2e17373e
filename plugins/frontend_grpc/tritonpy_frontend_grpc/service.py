"""The RPCs of the inference service. Independent of the transport."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from functools import partial
from typing import TYPE_CHECKING, TypeVar

from google.protobuf.message import DecodeError, Message
from mypy_extensions import mypyc_attr

from tritonpy import (
    DecoupledRefused,
    Engine,
    InferRequest,
    InferResponse,
    InvalidArgument,
    TritonError,
    Unavailable,
    Unsupported,
    now_ns,
)
from tritonpy.frontend import (
    LOAD_CALLS,
    MODEL_CALLS,
    LoopSink,
    RequestMemory,
    Reservation,
    Sink,
    StreamSink,
    internal_error,
)
from tritonpy.tracing import Tracer
from tritonpy_frontend_grpc.decode import decode_request
from tritonpy_frontend_grpc.decompression import (
    COMPRESSED_PREFIXES,
    INLINE_BELOW,
    LIMIT,
    decompress,
    decompress_async,
)
from tritonpy_frontend_grpc.infer_sink import DECOUPLED_UNSUPPORTED, InferResponseSink
from tritonpy_frontend_grpc.layout_cache import MessageLayoutCache
from tritonpy_frontend_grpc.management import BLOCKING, MANAGEMENT, model_ready_or_error
from tritonpy_frontend_grpc.parameters import wants_empty_final
from tritonpy_frontend_grpc.status import SHUTTING_DOWN
from tritonpy_frontend_grpc.stream import InferStream, ResponseWindow, StreamEntry
from tritonpy_frontend_grpc.stream_call import StreamCall
from tritonpy_frontend_grpc.tracing import StreamTrace, end_with_call, sample
from tritonpy_protos import Method
from tritonpy_protos.grpc_service_pb2 import ModelInferRequest

if TYPE_CHECKING:
    from tritonpy_frontend_grpc.access import GrpcAccess
    from tritonpy_frontend_grpc.call import GrpcCall, InferCall, Metadata, StreamingCall
    from tritonpy_frontend_grpc.load_stream import LoadStream
    from tritonpy_load_reports import LoadReport


_MAX_DECOMPRESSIONS = 2  # concurrent decompressions; bounds the memory of decompressed messages
MessageT = TypeVar("MessageT", bound=Message)


@mypyc_attr(allow_interpreted_subclasses=True)
class InferenceService:
    """Serves `engine` on the running event loop.

    `window` bounds the unsent responses of a decoupled request. Messages are bytes, compressed or
    not; `limit` bounds the size after decompression. Methods raise only TritonErrors, which end the
    call.
    """

    def __init__(
        self,
        engine: Engine,
        window: ResponseWindow,
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
        )  # messages up to this size need no checks
        self._decompression_slots = asyncio.Semaphore(_MAX_DECOMPRESSIONS)
        self.model_ready_errors = False  # whether ModelReady fails for an unknown model
        self.load_report = b""  # the encoded load of the server, for trailing metadata
        self.load_end_block: bytes | None = None  # the HTTP/2 block that ends a response with it
        self.note_response: Callable[[], None] | None = None
        self.load_stream: LoadStream | None = None
        self._engine = engine
        self._limit = limit
        self._access = access
        self._tracer = tracer or Tracer()
        self._window = window
        self._log = log
        self._loop = asyncio.get_running_loop()
        self._inflight = InflightCounter()
        self._layouts = MessageLayoutCache()
        self._sink = InferResponseSink(self._loop, self._end, self._to_triton_error)
        self._stream_sink = LoopSink(self._loop, self._deliver)
        self._decoupled_sink = StreamSink(self._loop, self._deliver)
        self._calls: set[StreamCall] = set()
        self._tasks: set[asyncio.Task[None]] = set()

    def report_load(self, note_response: Callable[[], None], stream: LoadStream) -> None:
        """Call `note_response` for each response that reports the load; serve `stream`."""
        self.note_response = note_response
        self.load_stream = stream

    def set_load(self, report: LoadReport) -> None:
        """Report this load with the next responses."""
        self.load_report = report.encode()
        self.load_end_block = None

    async def drain(self) -> None:
        """Refuse inference from now on, and wait for the requests in flight."""
        await self._inflight.drain()

    def close(self) -> None:
        """End open streams after their pending responses are sent."""
        if self.load_stream is not None:
            self.load_stream.close()
        for call in self._calls:
            call.close()

    def management(self, method: Method) -> Callable[[bytes, GrpcCall], Awaitable[Message]]:
        """Return the handler of a method in `MANAGEMENT`."""
        function, blocking, access = MANAGEMENT[method.name], method.name in BLOCKING, self._access
        if method.name == "ModelReady" and self.model_ready_errors:
            function = model_ready_or_error
        threads = LOAD_CALLS if method.name == "RepositoryModelLoad" else MODEL_CALLS

        async def result(raw: bytes, call: GrpcCall) -> Message:
            memory = self.memory.client().reservation()  # for the duration of the call
            if len(raw) > RequestMemory.UNCOUNTED:
                memory.require(len(raw))
            if raw[:1] in COMPRESSED_PREFIXES:
                raw = await self._decompress(raw, memory)
            message = parse_message(method.request, raw)
            if access is not None:
                access.check_message(method.path, call.metadata(), message)
            if blocking:
                return await threads.run(function, self._engine, message)
            return function(self._engine, message)

        async def handle(raw: bytes, call: GrpcCall) -> Message:
            try:
                return await result(raw, call)
            except Exception as error:
                raise self._to_triton_error(error) from None

        return handle

    def infer(self, raw: bytes, call: InferCall) -> None:
        """Start a ModelInfer call.

        `call.finish` receives the response or an error, before or after this returns, unless the
        call is cancelled.
        """
        if self._inflight.is_draining:
            call.finish(Unavailable(SHUTTING_DOWN))
            return
        self._inflight.add()
        if raw[:1] in COMPRESSED_PREFIXES:
            unpacking = self._loop.create_task(self._infer_compressed(raw, call))
            self._tasks.add(unpacking)
            unpacking.add_done_callback(self._tasks.discard)
        else:
            self._start(raw, call)

    def cancel(self, call: InferCall) -> None:
        """Cancel a call that was passed to `infer`. Does nothing if it has ended."""
        if not call.over:
            call.over = True
            self._inflight.remove()
            if call.request is not None:
                call.request.cancel()
                call.request = None

    async def _infer_compressed(self, raw: bytes, call: InferCall) -> None:
        if call.memory is None:
            call.memory = (call.account() or self.memory.client()).reservation()
        try:
            plain = await self._decompress(raw, call.memory)
        except Exception as error:
            self._end(call, self._to_triton_error(error))
        else:
            if not call.over:
                self._start(plain, call)

    async def _decompress(self, raw: bytes, memory: Reservation) -> bytes:
        if len(raw) < INLINE_BELOW:
            return decompress(raw, self._limit, memory)
        async with self._decompression_slots:
            return await decompress_async(raw, self._limit, memory)

    def _start(self, raw: bytes, call: InferCall) -> None:
        arrived = now_ns() if self._tracer.active else 0
        try:
            request = self._decode(raw, call)
            request.tag = call
            request.deadline_ns = call.deadline_ns()
            if arrived and (trace := sample(self._tracer, request, call.metadata(), arrived)):
                end_with_call(trace, call)
            call.request = request
            self._engine.infer(request)
        except DecoupledRefused:
            self._end(call, Unsupported(DECOUPLED_UNSUPPORTED))
        except Exception as error:
            self._end(call, self._to_triton_error(error))

    def _decode(self, raw: bytes, call: InferCall) -> InferRequest:
        if self._access is not None:
            return self._access.decode(
                parse_message(ModelInferRequest, raw), self._sink, call.metadata()
            )
        template = self._layouts.find(raw)
        request = None if template is None else template.request(raw, self._sink)
        return request or self._decode_message(
            raw, parse_message(ModelInferRequest, raw), self._sink
        )

    def _decode_message(self, raw: bytes, message: ModelInferRequest, sink: Sink) -> InferRequest:
        request = decode_request(message, sink)
        self._layouts.learn(raw, message, request)
        return request

    def _end(self, call: InferCall, result: bytes | TritonError) -> None:
        if not call.over:
            call.over = True
            # Breaks a reference cycle, so that buffers do not wait for the garbage collector.
            call.request = None
            self._inflight.remove()
            call.finish(result)

    async def stream(self, call: StreamingCall) -> None:
        """Serve a ModelStreamInfer call until the client is done and all responses are sent."""
        metadata = call.metadata()
        ends_on_error = ("triton_grpc_error", "true") in metadata
        take, receive_now = partial(self._take, metadata), partial(self._receive_now, metadata)
        account = call.account() or self.memory.client()
        stream = StreamCall(call, take, receive_now, self._window, ends_on_error, account)
        self._calls.add(stream)
        try:
            error = await stream.run()
        except Exception as bug:
            raise self._to_triton_error(bug) from None
        finally:
            self._calls.discard(stream)
        if error is not None:
            raise error

    def _take(self, metadata: Metadata, stream: InferStream, raw: bytes) -> Awaitable[None] | None:
        if raw[:1] in COMPRESSED_PREFIXES:
            return self._receive_compressed(metadata, stream, raw)
        self._receive_plain(metadata, stream, raw)
        return None

    def _receive_now(self, metadata: Metadata, stream: InferStream, raw: bytes) -> bool:
        if raw[:1] in COMPRESSED_PREFIXES:
            return False
        self._receive_plain(metadata, stream, raw)
        return True

    async def _receive_compressed(
        self, metadata: Metadata, stream: InferStream, raw: bytes
    ) -> None:
        try:
            memory = stream.account.reservation()
            plain = await self._decompress(raw, memory)
        except TritonError as error:
            stream.refuse(StreamEntry(stream), error)
        else:
            self._receive_plain(metadata, stream, plain)

    def _receive_plain(self, metadata: Metadata, stream: InferStream, raw: bytes) -> None:
        entry = StreamEntry(stream)
        arrived = now_ns() if self._tracer.active else 0
        try:
            stream.reserve(entry, len(raw))
            request = self._decode_streamed(metadata, entry, raw)
            if arrived and (trace := sample(self._tracer, request, metadata, arrived)):
                entry.trace = StreamTrace(trace)
            stream.take(entry, request, self._engine, self._decoupled_sink)
        except Exception as error:
            stream.refuse(entry, self._to_triton_error(error))
        else:
            self._inflight.add()

    def _decode_streamed(self, metadata: Metadata, entry: StreamEntry, raw: bytes) -> InferRequest:
        template = (
            self._layouts.find(raw)
            if self._access is None and not self._inflight.is_draining
            else None
        )
        request = None if template is None else template.request(raw, self._stream_sink)
        if template is not None and request is not None:
            entry.describe(
                request.id,
                request.model_name,
                template.layout.version_text,
                template.layout.empty_final,
            )
            return request
        message = parse_message(ModelInferRequest, raw)
        entry.describe(
            message.id,
            message.model_name,
            message.model_version,
            wants_empty_final(message.parameters),
        )
        if self._inflight.is_draining:
            raise Unavailable(SHUTTING_DOWN)
        if self._access is not None:
            return self._access.decode(message, self._stream_sink, metadata)
        return self._decode_message(raw, message, self._stream_sink)

    def _deliver(self, request: InferRequest, response: InferResponse) -> None:
        request.tag.stream.add_response(request.tag, response)
        if response.final:
            self._inflight.remove()

    def _to_triton_error(self, error: Exception) -> TritonError:
        return (
            error if isinstance(error, TritonError) else internal_error(self._log, "a call", error)
        )


def parse_message(kind: type[MessageT], raw: bytes) -> MessageT:
    """Return the message in `raw`.

    Raises InvalidArgument if it is no valid message of that type.
    """
    try:
        return kind.FromString(raw)
    except DecodeError:
        name = kind.DESCRIPTOR.full_name
        raise InvalidArgument(
            f"unable to parse the request: its {len(raw)} bytes are not a message {name}"
        ) from None


class InflightCounter:
    """Counts requests in flight. Used on one event loop only."""

    def __init__(self) -> None:
        self.is_draining = False
        self._count = 0
        self._is_empty = asyncio.Event()

    def add(self) -> None:
        """Count a new request. Check `is_draining` first."""
        self._count += 1

    def remove(self) -> None:
        """Remove a request that has its response or was cancelled."""
        self._count -= 1
        if self.is_draining and not self._count:
            self._is_empty.set()

    async def drain(self) -> None:
        """Set `is_draining` and wait until no request is in flight."""
        self.is_draining = True
        if self._count:
            await self._is_empty.wait()
