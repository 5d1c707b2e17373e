"""The requests that a model of this process makes of other models."""

from __future__ import annotations

from asyncio import AbstractEventLoop
from collections.abc import Callable
from queue import SimpleQueue
from typing import TYPE_CHECKING, TypeVar
from weakref import ref

from tritonpy import (
    CallbackSink,
    InferRequest,
    InferResponse,
    Internal,
    ModelContext,
    OutputSpec,
    SequenceInfo,
    Tensor,
    TritonError,
    check_model_call,
    incident,
)
from tritonpy_backend_python.in_process.responses import answered
from tritonpy_backend_python.in_process.tensors import sent
from tritonpy_worker.api.constants import (
    TRITONSERVER_REQUEST_FLAG_SEQUENCE_END,
    TRITONSERVER_REQUEST_FLAG_SEQUENCE_START,
)
from tritonpy_worker.api.errors import TritonModelException
from tritonpy_worker.api.response import InferenceResponse
from tritonpy_worker.first_response import FirstResponse

if TYPE_CHECKING:
    from tritonpy_worker.api.call import CallSpec

_C = TypeVar("_C", bound="Call")
# Returns the request on whose behalf a call is made, None where there is none.
FindParent = Callable[["CallSpec"], InferRequest | None]
# Returns what the model is told whose call of the model of that name failed.
Refused = Callable[[str, TritonError], TritonError]


class Call:
    """The responses to one request, in their order: an iterator that waits for each. One thread at a time may use it."""

    def __init__(self) -> None:
        self._responses: SimpleQueue[InferResponse] = SimpleQueue()
        self._over = False
        self.request: InferRequest | None = None

    def __iter__(self) -> Call:
        return self

    def __next__(self) -> InferenceResponse:
        """Wait for the next response; one without outputs ends a stream whose model had nothing more to say."""
        if self._over:
            raise StopIteration
        response = self._responses.get()
        self._over = response.final
        return answered(response)

    def cancel(self) -> None:
        """Ask for an early end; answers still come, the last one says that it was cancelled."""
        if self.request is not None:
            self.request.cancel()

    def take(self, response: InferResponse) -> None:
        """Add a response, from any thread."""
        self._responses.put(response)


class AsyncCall(Call):
    """A call whose first response is awaited on an event loop."""

    def __init__(self, loop: AbstractEventLoop, arrived: Callable[[AsyncCall], None]) -> None:
        """`arrived(call)` is called when the response is there."""
        super().__init__()
        self.first = FirstResponse(loop, self.cancel)
        self._arrived = arrived

    def take(self, response: InferResponse) -> None:
        super().take(response)
        self._arrived(self)
        self.first.arrive()


class Calls:
    """Makes requests of calls. A stream that nobody holds any more is let run out unheard."""

    def __init__(self, model: ModelContext, parent: FindParent, refused: Refused) -> None:
        self._engine = model.engine
        self._log = model.log
        self._parent = parent
        self._refused = refused
        self._awaited: set[AsyncCall] = set()  # who awaits a call is held by nobody but by the call

    def start(self, spec: CallSpec) -> Call:
        """Hand the request to its model; what goes wrong on the way is its one response."""
        return self._start(spec, Call())

    def start_on(self, loop: AbstractEventLoop, spec: CallSpec) -> AsyncCall:
        """Do the same; its first response is to be awaited on `loop`."""
        call = AsyncCall(loop, self._awaited.discard)
        self._awaited.add(call)
        return self._start(spec, call)

    def _start(self, spec: CallSpec, call: _C) -> _C:
        try:
            inputs = [sent(tensor) for tensor in spec.inputs]
        except (MemoryError, TritonModelException) as error:
            call.take(InferResponse((), error=Internal(str(error) or type(error).__name__)))
            return call
        call.request = request = self._request(spec, inputs, call)
        try:
            check_model_call(request, inputs, self._engine.model_config)
            self._engine.infer(request)
        except Exception as error:
            what = f"a call of {spec.model_name}"
            refusal = error if isinstance(error, TritonError) else incident(self._log, what, error)
            call.take(InferResponse((), error=self._refused(spec.model_name, refusal)))
        return call

    def _request(self, spec: CallSpec, inputs: list[Tensor], call: Call) -> InferRequest:
        request = InferRequest(
            spec.model_name,
            {tensor.name: tensor for tensor in inputs},
            CallbackSink(_delivery(ref(call))),
            spec.model_version,
            spec.request_id,
            {name: OutputSpec(name) for name in spec.requested_output_names} or None,
            spec.parameters,
            timeout_us=spec.timeout,
            sequence=_sequence(spec),
            accepts_decoupled=spec.decoupled,
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


def _delivery(call: ref[Call]) -> Callable[[InferRequest, InferResponse], None]:
    def deliver(_request: InferRequest, response: InferResponse) -> None:
        heard = call()
        if heard is not None:
            heard.take(response)

    return deliver
