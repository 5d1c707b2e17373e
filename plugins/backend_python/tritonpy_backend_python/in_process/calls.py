"""Requests that a model in this process makes to other models."""

from __future__ import annotations

from asyncio import AbstractEventLoop
from collections.abc import Callable
from queue import SimpleQueue
from typing import TYPE_CHECKING, TypeVar
from weakref import ref

from tritonpy import (
    InferRequest,
    InferResponse,
    Internal,
    ModelContext,
    OutputSpec,
    SequenceInfo,
    Tensor,
    TritonError,
)
from tritonpy.execution import CallStream, CallStreams, check_model_call
from tritonpy.frontend import Sink, internal_error
from tritonpy_backend_python.in_process.cleanup_thread import CleanupThread
from tritonpy_backend_python.in_process.responses import received_response
from tritonpy_backend_python.in_process.tensors import sent_tensor
from tritonpy_worker.api.constants import (
    TRITONSERVER_REQUEST_FLAG_SEQUENCE_END,
    TRITONSERVER_REQUEST_FLAG_SEQUENCE_START,
)
from tritonpy_worker.api.errors import TritonModelException
from tritonpy_worker.api.response import InferenceResponse
from tritonpy_worker.context import blocks_loop, detached
from tritonpy_worker.first_response import FirstResponse

if TYPE_CHECKING:
    from tritonpy_worker.api.call import CallSpec

_C = TypeVar("_C", bound="Call")
# Returns the request that a call belongs to, or None.
FindParent = Callable[["CallSpec"], InferRequest | None]
# Converts the error of a call of the named model to the error that the calling model gets.
CallError = Callable[[str, TritonError], TritonError]


class Call:
    """The responses to one request, as a blocking iterator in their order.

    One thread at a time may use it. A model that responds faster than its responses are taken is
    throttled. Responses of a call that was dropped are discarded.
    """

    def __init__(self, calls: Calls) -> None:
        self.stream = CallStream()
        self.request: InferRequest | None = None
        self._calls = calls
        self._responses: SimpleQueue[InferResponse] = SimpleQueue()
        self._started = False
        self._finished = False

    def __iter__(self) -> Call:
        return self

    def __next__(self) -> InferenceResponse:
        """Wait for the next response.

        The last response of a stream may have no outputs.
        """
        if self._finished:
            raise StopIteration
        self.announce_wait()
        response = self._responses.get()
        self._finished = response.final
        self.stream.consume()
        return received_response(response)

    def announce_wait(self) -> None:
        """Announce that a thread waits for the first response and reads no other stream."""
        if self.request is not None and not self.stream.awaited:
            self._calls.streams.mark_awaited(self.request)

    def __del__(self) -> None:
        if self.request is not None and self.request.accepts_decoupled and not self._finished:
            self._calls.cleanup.add(self.stream.abandon)

    def cancel(self) -> None:
        """Request an early end. Responses still arrive; the last one reports the cancellation."""
        if self.request is not None:
            self.request.cancel()

    def add_response(self, response: InferResponse) -> None:
        """Add a response. Any thread may call this."""
        self._responses.put(response)


class AsyncCall(Call):
    """A call whose first response is awaited on an event loop."""

    def __init__(
        self, calls: Calls, loop: AbstractEventLoop, arrived: Callable[[AsyncCall], None]
    ) -> None:
        """`arrived(call)` is called for each response."""
        super().__init__(calls)
        self.first = FirstResponse(loop, self.cancel)
        self._arrived = arrived

    def add_response(self, response: InferResponse) -> None:
        super().add_response(response)
        self._arrived(self)
        self.first.set_arrived()


class _CallSink(Sink):
    """Receives the responses of a call.

    The request's tag is its `CallStream`, whose flow control limits the producer.
    """

    def __init__(self, call: Call, streams: CallStreams) -> None:
        self._call = ref(call)
        self._streams = streams

    def put(self, request: InferRequest, response: InferResponse) -> None:
        stream: CallStream = request.tag
        stream.flow_control.put(sum([tensor.nbytes for tensor in response.outputs]))
        if response.final:
            self._streams.end(request)
        call = self._call()
        if call is None:
            stream.consume()
        else:
            call.add_response(response)

    def ready(self, request: InferRequest) -> bool:
        stream: CallStream = request.tag
        return stream.flow_control.ready

    def when_ready(self, request: InferRequest, callback: Callable[[], None]) -> None:
        stream: CallStream = request.tag
        stream.flow_control.when_ready(callback)
        self._streams.resume_blocked()

    def cancelled(self, request: InferRequest) -> None:
        stream: CallStream = request.tag
        stream.flow_control.release()


class Calls:
    """Starts calls of other models."""

    def __init__(
        self, model: ModelContext, parent: FindParent, call_error: CallError, cleanup: CleanupThread
    ) -> None:
        self.streams = CallStreams()
        self.cleanup = cleanup
        self._engine = model.engine
        self._log = model.log
        self._parent = parent
        self._call_error = call_error
        # Keeps awaited calls alive: only the call references its coroutine.
        self._awaited: set[AsyncCall] = set()

    def start(self, spec: CallSpec) -> Call:
        """Start the request. If it cannot be sent, the error becomes its only response."""
        return self._start(spec, Call(self))

    def start_on(self, loop: AbstractEventLoop, spec: CallSpec) -> AsyncCall:
        """Start the request. Its first response is awaited on `loop`."""
        call = AsyncCall(self, loop, self._awaited.discard)
        self._awaited.add(call)
        self._start(spec, call)
        call.announce_wait()
        return call

    def close(self) -> None:
        """Stop throttling: the model is being closed."""
        self.streams.close()

    def _start(self, spec: CallSpec, call: _C) -> _C:
        try:
            inputs = [sent_tensor(tensor) for tensor in spec.inputs]
        except (MemoryError, TritonModelException) as error:
            call.add_response(InferResponse((), error=Internal(str(error) or type(error).__name__)))
            return call
        call.request = request = self._request(spec, inputs, call)
        request.blocks_loop = not isinstance(call, AsyncCall) and blocks_loop()
        request.detached = detached()
        if spec.decoupled:
            self.cleanup.begin()
            self.streams.begin(request)
        try:
            check_model_call(request, inputs, self._engine.model_config)
            self._engine.infer(request)
        except Exception as error:
            operation = f"a call of {spec.model_name}"
            refusal = (
                error
                if isinstance(error, TritonError)
                else internal_error(self._log, operation, error)
            )
            self.streams.end(request)
            call.add_response(InferResponse((), error=self._call_error(spec.model_name, refusal)))
        return call

    def _request(self, spec: CallSpec, inputs: list[Tensor], call: Call) -> InferRequest:
        request = InferRequest(
            spec.model_name,
            {tensor.name: tensor for tensor in inputs},
            _CallSink(call, self.streams),
            spec.model_version,
            spec.request_id,
            {name: OutputSpec(name) for name in spec.requested_output_names} or None,
            spec.parameters,
            timeout_us=spec.timeout,
            sequence=_sequence(spec),
            accepts_decoupled=spec.decoupled,
            tag=call.stream,
            parent=self._parent(spec),
        )
        parent = request.parent
        if parent is not None:
            request.principal, request.headers = parent.principal, parent.headers
            request.deadline_ns = parent.deadline_ns
            request.trace = None if spec.trace is None else parent.trace
        return request


def _sequence(spec: CallSpec) -> SequenceInfo | None:
    if not spec.correlation_id:
        return None
    starts = bool(spec.flags & TRITONSERVER_REQUEST_FLAG_SEQUENCE_START)
    return SequenceInfo(
        spec.correlation_id, starts, bool(spec.flags & TRITONSERVER_REQUEST_FLAG_SEQUENCE_END)
    )
