"""The requests that a model of this process makes of other models."""

from __future__ import annotations

from asyncio import AbstractEventLoop
from collections.abc import Callable
from queue import SimpleQueue
from typing import TYPE_CHECKING, TypeVar
from weakref import ref

from tritonpy import (
    CallStream,
    CallStreams,
    InferRequest,
    InferResponse,
    Internal,
    ModelContext,
    OutputSpec,
    SequenceInfo,
    Sink,
    Tensor,
    TritonError,
    check_model_call,
    incident,
)
from tritonpy_backend_python.in_process.errands import Errands
from tritonpy_backend_python.in_process.responses import answered
from tritonpy_backend_python.in_process.tensors import sent
from tritonpy_worker.api.constants import (
    TRITONSERVER_REQUEST_FLAG_SEQUENCE_END,
    TRITONSERVER_REQUEST_FLAG_SEQUENCE_START,
)
from tritonpy_worker.api.errors import TritonModelException
from tritonpy_worker.api.response import InferenceResponse
from tritonpy_worker.context import stops_loop, went_on
from tritonpy_worker.first_response import FirstResponse

if TYPE_CHECKING:
    from tritonpy_worker.api.call import CallSpec

_C = TypeVar("_C", bound="Call")
# Returns the request on whose behalf a call is made, None where there is none.
FindParent = Callable[["CallSpec"], InferRequest | None]
# Returns what the model is told whose call of the model of that name failed.
Refused = Callable[[str, TritonError], TritonError]


class Call:
    """The responses to one request, in their order: an iterator that waits for each. One thread at a time may use it.

    The model that answers faster than they are taken is held back; one that nobody holds any more runs out unheard.
    """

    def __init__(self, calls: Calls) -> None:
        self.stream = CallStream()
        self.request: InferRequest | None = None
        self._calls = calls
        self._responses: SimpleQueue[InferResponse] = SimpleQueue()
        self._begun = False
        self._over = False

    def __iter__(self) -> Call:
        return self

    def __next__(self) -> InferenceResponse:
        """Wait for the next response; one without outputs ends a stream whose model had nothing more to say."""
        if self._over:
            raise StopIteration
        self.want()
        response = self._responses.get()
        self._over = response.final
        self.stream.took()
        return answered(response)

    def want(self) -> None:
        """Take note that somebody waits for the first response, and may take nothing of another stream meanwhile."""
        if self.request is not None and not self.stream.wanted:
            self._calls.streams.want(self.request)

    def __del__(self) -> None:
        if self.request is not None and self.request.accepts_decoupled and not self._over:
            self._calls.errands.add(self.stream.leave)

    def cancel(self) -> None:
        """Ask for an early end; answers still come, the last one says that it was cancelled."""
        if self.request is not None:
            self.request.cancel()

    def take(self, response: InferResponse) -> None:
        """Add a response, from any thread."""
        self._responses.put(response)


class AsyncCall(Call):
    """A call whose first response is awaited on an event loop."""

    def __init__(self, calls: Calls, loop: AbstractEventLoop, arrived: Callable[[AsyncCall], None]) -> None:
        """`arrived(call)` is called when the response is there."""
        super().__init__(calls)
        self.first = FirstResponse(loop, self.cancel)
        self._arrived = arrived

    def take(self, response: InferResponse) -> None:
        super().take(response)
        self._arrived(self)
        self.first.arrive()


class _CallSink(Sink):
    """Where the responses of a call go while somebody holds it; its producer waits for the `CallStream` that is the tag of its request."""

    def __init__(self, call: Call, streams: CallStreams) -> None:
        self._call = ref(call)
        self._streams = streams

    def put(self, request: InferRequest, response: InferResponse) -> None:
        stream: CallStream = request.tag
        stream.room.put(sum([tensor.nbytes for tensor in response.outputs]))
        if response.final:
            self._streams.end(request)
        call = self._call()
        if call is None:
            stream.took()
        else:
            call.take(response)

    def ready(self, request: InferRequest) -> bool:
        stream: CallStream = request.tag
        return stream.room.ready

    def when_ready(self, request: InferRequest, callback: Callable[[], None]) -> None:
        stream: CallStream = request.tag
        stream.room.when_ready(callback)
        self._streams.let_go_on()

    def cancelled(self, request: InferRequest) -> None:
        stream: CallStream = request.tag
        stream.room.release()


class Calls:
    """Makes requests of calls."""

    def __init__(self, model: ModelContext, parent: FindParent, refused: Refused, errands: Errands) -> None:
        self.streams = CallStreams()
        self.errands = errands
        self._engine = model.engine
        self._log = model.log
        self._parent = parent
        self._refused = refused
        self._awaited: set[AsyncCall] = set()  # who awaits a call is held by nobody but by the call

    def start(self, spec: CallSpec) -> Call:
        """Hand the request to its model; what goes wrong on the way is its one response."""
        return self._start(spec, Call(self))

    def start_on(self, loop: AbstractEventLoop, spec: CallSpec) -> AsyncCall:
        """Do the same; its first response is to be awaited on `loop`."""
        call = AsyncCall(self, loop, self._awaited.discard)
        self._awaited.add(call)
        self._start(spec, call)
        call.want()
        return call

    def close(self) -> None:
        """Hold nobody back any more: the model is over."""
        self.streams.close()

    def _start(self, spec: CallSpec, call: _C) -> _C:
        try:
            inputs = [sent(tensor) for tensor in spec.inputs]
        except (MemoryError, TritonModelException) as error:
            call.take(InferResponse((), error=Internal(str(error) or type(error).__name__)))
            return call
        call.request = request = self._request(spec, inputs, call)
        request.stops_loop = not isinstance(call, AsyncCall) and stops_loop()
        request.went_on = went_on()
        if spec.decoupled:
            self.errands.begin()
            self.streams.begin(request)
        try:
            check_model_call(request, inputs, self._engine.model_config)
            self._engine.infer(request)
        except Exception as error:
            what = f"a call of {spec.model_name}"
            refusal = error if isinstance(error, TritonError) else incident(self._log, what, error)
            self.streams.end(request)
            call.take(InferResponse((), error=self._refused(spec.model_name, refusal)))
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
    return SequenceInfo(spec.correlation_id, starts, bool(spec.flags & TRITONSERVER_REQUEST_FLAG_SEQUENCE_END))
