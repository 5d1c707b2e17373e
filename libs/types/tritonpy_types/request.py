"""Inference requests with their responses, sinks and batches, which refer to each other."""

from __future__ import annotations

import asyncio
import threading
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, Protocol

import msgspec

from tritonpy_types.clock import now_ns
from tritonpy_types.errors import Internal, TritonError
from tritonpy_types.tensor import Tensor

if TYPE_CHECKING:
    from tritonpy_protos.model_config_pb2 import ModelConfig
    from tritonpy_types.flow_control import FlowControl

ParameterValue = str | int | bool | float
NO_PARAMETERS: Mapping[str, ParameterValue] = {}


class OutputSpec(msgspec.Struct, frozen=True, gc=False):
    """The client's settings for one output.

    `classification` > 0 requests that many classes. `region` names a shared-memory region that
    receives up to `byte_size` bytes of data at `offset`. Only the frontend uses `binary`: how it
    encodes the data.
    """

    name: str
    classification: int = 0
    region: str = ""
    offset: int = 0
    byte_size: int = 0
    binary: bool = False


class SequenceInfo(msgspec.Struct, frozen=True, gc=False):
    """The sequence of a request; `id` is a non-zero integer or a non-empty text."""

    id: int | str
    start: bool = False
    end: bool = False


class Owner(Protocol):
    """The owner of a request between `Engine.infer` and its end: the loaded model."""

    def respond(self, requests: Sequence[InferRequest], responses: Sequence[InferResponse]) -> None:
        """Send one response per request; responses after the final one are dropped and counted."""

    def reschedule(self, request: InferRequest) -> None:
        """Return `request` to the scheduler for another execution."""

    def cancel(self, request: InferRequest) -> None:
        """Drop `request` if it still waits in the queue."""


class HeldRegions(Protocol):
    """The regions that a request uses, held from `Engine.infer` to its final response."""

    def finish(self, request: InferRequest, response: InferResponse) -> InferResponse:
        """Write outputs to their regions; return the response without them, or an error.

        Never raises.
        """

    def outputs(self, response: InferResponse) -> Sequence[Tensor]:
        """Return the outputs of a finished response with the data that still exists.

        Never raises.
        """


class _Unowned:
    """The owner of a request before a model owns it."""

    def respond(self, requests: Sequence[InferRequest], responses: Sequence[InferResponse]) -> None:
        for request, response in zip(requests, responses, strict=True):
            if not request.finished:
                request.finished = response.final
                request.sink.put(request, response)

    def reschedule(self, request: InferRequest) -> None:
        """Do nothing: no scheduler owns the request."""

    def cancel(self, request: InferRequest) -> None:
        """Do nothing: the request is in no queue."""


UNOWNED = _Unowned()


class InferRequest(msgspec.Struct, eq=False, weakref=True):
    """One request of a frontend, an ensemble step or a model that calls another.

    The caller owns it until `Engine.infer` returns; then the model owns it. The sink gets any
    number of responses, of which exactly one is final. The inputs never change and live until the
    final response. `timeout_us` is the protocol's request timeout; only queue policies use it.
    `deadline_ns` is absolute on the server's clock (0: none) and cancels the request in any state.
    `model_version` -1 selects the newest ready version.
    """

    model_name: str
    inputs: Mapping[str, Tensor]
    sink: Sink
    model_version: int = -1
    id: str = ""
    outputs: dict[str, OutputSpec] | None = None  # None: all outputs of the model
    parameters: Mapping[str, ParameterValue] = NO_PARAMETERS
    priority: int = 0
    timeout_us: int = 0
    deadline_ns: int = 0
    sequence: SequenceInfo | None = None
    accepts_decoupled: bool = False  # False: the caller takes exactly one response
    classifies: bool = False  # some output requests classes
    uses_regions: bool = False  # some input is a RegionSlice, or some output names a region
    tag: Any = None  # for the sink's own use
    principal: Any = None
    headers: Mapping[str, str] | None = None
    trace: Any = None
    parent: InferRequest | None = None
    # The code that created it blocks its model's event loop, and so the model's other coroutines.
    blocks_loop: bool = False
    detached: bool = False  # the execution that created it does not wait for it
    compute_times: ComputeTimes | None = (
        None  # set if a caller needs the costs: an ensemble for its steps
    )
    received_ns: int = 0
    queued_ns: int = 0
    # State of the engine and the model. Frontends and backends may read it; only those two write
    # it.
    regions: HeldRegions | None = None
    owner: Owner = UNOWNED
    batch: Batch | None = None
    cache: CacheLookup | None = None
    batch_size: int = 1
    lost_workers: int = 0  # number of worker processes that ended while they held it
    unchecked_strings: bool = False
    finished: bool = False  # its final response was sent
    cancelled: bool = False

    def respond(self, response: InferResponse) -> None:
        """Send one response, from any thread.

        Responses after the final one are dropped and counted.
        """
        self.owner.respond((self,), (response,))

    def reschedule(self) -> None:
        """Return the request for another execution instead of sending a final response.

        It leaves its instance and waits again. A scheduler that does not support this fails it.
        """
        self.owner.reschedule(self)

    def cancel(self) -> None:
        """Request cancellation, from any thread.

        A waiting request is dropped. A running request ends early only if its backend checks
        `cancelled`.
        """
        self.cancelled = True
        self.owner.cancel(self)
        self.sink.cancelled(self)

    def wait_for_credit(self) -> bool:
        """Block until flow control allows another response; return False after a cancellation.

        For decoupled backends, before each response that is not final. After a cancellation no
        client reads further responses. If credit is available, it costs one call.
        """
        sink = self.sink
        if not sink.ready(self) and not self.cancelled:
            credit = threading.Event()
            sink.when_ready(self, credit.set)
            # The cancellation sets the flag before it calls the callbacks, so one of the two is
            # seen.
            if not self.cancelled:
                credit.wait()
        return not self.cancelled


class CacheLookup(msgspec.Struct, eq=False, gc=False):
    """The state of one request, created when its lookup begins.

    `size` is that of the inputs in bytes. `key` is None if no response will be inserted. Times are
    in ns.
    """

    size: int
    key: bytes | None = None
    hit: bool = False
    start_ns: int = 0
    lookup_ns: int = 0
    insertion_ns: int = 0  # of an insertion before the response is sent

    @property
    def cache_ns(self) -> int:
        """The time that the cache added to the request."""
        return self.lookup_ns + self.insertion_ns


class InferResponse(msgspec.Struct, eq=False):
    """One response to a request. If `error` is set, `outputs` is empty.

    A decoupled model sends any number of responses and marks one `final`. A final response that is
    `empty` has no data and only ends the request. If `refused`, it carries the error that
    `Engine.infer` would have raised; an engine in another process refuses requests this way.
    """

    outputs: Sequence[Tensor]
    model_name: str = ""
    model_version: int = -1
    id: str = ""
    parameters: Mapping[str, ParameterValue] = NO_PARAMETERS
    error: TritonError | None = None
    final: bool = True
    empty: bool = False
    refused: bool = False

    @classmethod
    def failed(cls, request: InferRequest, error: TritonError) -> InferResponse:
        """Return the final response with `error`."""
        return cls((), request.model_name, request.model_version, request.id, error=error)


class Sink(ABC):
    """Receives responses, from any thread. `put` never blocks and never raises.

    No lock is held during the call. So it may respond to another request or call the engine, as for
    the next step of an ensemble. If `passes_on` is set, the sink sends responses to another process
    and accepts tensors whose data was not accessed.
    """

    passes_on: ClassVar[bool] = False

    @abstractmethod
    def put(self, request: InferRequest, response: InferResponse) -> None:
        """Take one response; those of one request arrive in order, the final one last."""

    def ready(self, request: InferRequest) -> bool:
        """Return False while the stream of this request is full.

        A decoupled backend should send its next response when it is True again.
        """
        return True

    def when_ready(self, request: InferRequest, callback: Callable[[], None]) -> None:
        """Call `callback` once, from any thread, when the stream is `ready`.

        It is called immediately if the stream is ready, and also when the client has left or the
        request is cancelled. It must not block or raise.
        """
        callback()

    def cancelled(self, request: InferRequest) -> None:
        """Handle that the request was cancelled: call the callbacks that wait for its stream."""


class CallbackSink(Sink):
    """Calls a function in the responding thread; for tests, ensembles and in-process callers."""

    def __init__(self, deliver: Callable[[InferRequest, InferResponse], None]) -> None:
        self._deliver = deliver

    def put(self, request: InferRequest, response: InferResponse) -> None:
        self._deliver(request, response)


CallSoon = Callable[[Callable[[], None]], object]
# By event loop: how responses that are put on its own thread get delivered.
_CALL_SOON: dict[asyncio.AbstractEventLoop, CallSoon] = {}


def deliver_with(loop: asyncio.AbstractEventLoop, call_soon: CallSoon | None) -> None:
    """Deliver responses that are put on the thread of `loop` with `call_soon`.

    A server passes a function that calls back in the same iteration of the loop if it can, so that
    a batch that ran on the loop is answered without another one. None restores `loop.call_soon`.
    """
    if call_soon is None:
        _CALL_SOON.pop(loop, None)
    else:
        _CALL_SOON[loop] = call_soon


class LoopQueueSink(Sink):
    """Queues responses for an event loop and delivers all of an iteration at once.

    Responses that are put on the loop's own thread are delivered as `deliver_with` says. It wakes
    the loop at most once for any number of queued responses. So a batch that responds at once costs
    one wake-up.
    """

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._waiting: deque[tuple[InferRequest, InferResponse]] = deque()
        self._woken = False

    @abstractmethod
    def deliver_waiting(self, waiting: deque[tuple[InferRequest, InferResponse]]) -> None:
        """Remove the queued responses, oldest first, and deliver them on the loop's thread.

        If it raises, the next event-loop iteration delivers the rest.
        """

    def put(self, request: InferRequest, response: InferResponse) -> None:
        self._waiting.append((request, response))
        if not self._woken:
            self._wake()

    def _wake(self) -> None:
        self._woken = True
        try:
            # On the loop's own thread (responses of a worker) no system call is needed to wake it.
            if asyncio._get_running_loop() is self._loop:
                _CALL_SOON.get(self._loop, self._loop.call_soon)(self._drain)
            else:
                self._loop.call_soon_threadsafe(self._drain)
        except RuntimeError:  # the loop is closed, and no client is left
            self._woken = False
            self._waiting.clear()

    def _drain(self) -> None:
        # Cleared before the queue is read: a response put from now on schedules its own wake-up.
        self._woken = False
        try:
            self.deliver_waiting(self._waiting)
        finally:
            # after an exception, deliver the rest without waiting for the next response
            if self._waiting and not self._woken:
                self._wake()


class LoopSink(LoopQueueSink):
    """Delivers responses on an event loop one by one: `deliver` runs on the loop's thread."""

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        deliver: Callable[[InferRequest, InferResponse], None],
    ) -> None:
        super().__init__(loop)
        self._deliver = deliver

    def deliver_waiting(self, waiting: deque[tuple[InferRequest, InferResponse]]) -> None:
        deliver = self._deliver
        while waiting:
            request, response = waiting.popleft()
            deliver(request, response)


class StreamSink(LoopSink):
    """A `LoopSink` for requests whose `tag` has a `FlowControl` named `flow_control`.

    It counts each response there. The `deliver` function calls `take` on the flow control when the
    response was sent or dropped, and `abandon` when the client has left.
    """

    def put(self, request: InferRequest, response: InferResponse) -> None:
        _room(request).put(sum([tensor.nbytes for tensor in response.outputs]))
        super().put(request, response)

    def ready(self, request: InferRequest) -> bool:
        return _room(request).ready

    def when_ready(self, request: InferRequest, callback: Callable[[], None]) -> None:
        _room(request).when_ready(callback)

    def cancelled(self, request: InferRequest) -> None:
        _room(request).release()


def _room(request: InferRequest) -> FlowControl:
    flow_control: FlowControl = request.tag.flow_control
    return flow_control


NO_TENSORS: tuple[Tensor, ...] = ()


class ExecutedModel(Protocol):
    """What a batch knows about its model: the part of `ModelContext` for gather and scatter."""

    name: str
    version: int
    config: ModelConfig
    output_types: Mapping[str, str]
    layout: Any  # a `BatchLayout`, or None if every tensor is stacked rows


class Batch(msgspec.Struct, eq=False, weakref=True):
    """One execution: its requests and the tensors that the scheduler adds.

    `slots` is None for a plain batch. In a direct sequence batch it has one entry per slot, which
    is None if the slot has no data. `controls` and `states` contain tensors for the whole batch,
    one row per slot (or per request without slots). `new_states` receives the outputs named in
    `state_outputs`, as whole tensors, for the scheduler. If the array of a state is writable, it is
    the only buffer of its sequence: a backend may compute the new state in it and return it.
    """

    requests: list[InferRequest]
    slots: Sequence[InferRequest | None] | None = None
    controls: Sequence[Tensor] = NO_TENSORS
    states: Sequence[Tensor] = NO_TENSORS
    state_outputs: Sequence[str] = ()
    new_states: dict[str, Tensor] = msgspec.field(default_factory=dict)
    # Set by the runner before the backend receives the batch.
    model: ExecutedModel | None = None
    instance: Any = None
    start_ns: int = 0
    input_end_ns: int = 0
    infer_end_ns: int = 0
    counted: bool = False  # the statistics include its execution
    executing: bool = False  # its instance is executing it

    @property
    def size(self) -> int:
        """Rows along the batch dimension: the sum of the batch sizes, or the number of slots."""
        if self.slots is not None:
            return len(self.slots)
        return sum([request.batch_size for request in self.requests])

    def stamp(self) -> None:
        """Record the end of input (first call), then the end of inference (each later call)."""
        if self.input_end_ns:
            self.infer_end_ns = now_ns()
        else:
            self.input_end_ns = now_ns()

    def respond(self, responses: Sequence[InferResponse]) -> None:
        """Send one response to each request, in order; cheaper than one call for each."""
        requests = self.requests
        if type(responses) is not list or len(responses) != len(requests):
            self._check(responses)
        if requests:
            requests[0].owner.respond(requests, responses)

    def _check(self, responses: object) -> None:
        count = len(self.requests)
        expected = (
            f"expected a sequence of {count} InferResponse objects, one for each request of the "
            "batch"
        )
        if isinstance(responses, str) or not isinstance(responses, Sequence):
            raise Internal(
                f"the backend responded with a value of type '{type(responses).__name__}', "
                f"{expected}"
            )
        if len(responses) != count:
            raise Internal(f"the backend sent {len(responses)} responses, {expected}")


class ComputeTimes(msgspec.Struct, eq=False, gc=False):
    """Compute times of one request in ns; for an ensemble the sums of its steps.

    `start_ns` is when the request stopped waiting. The times are set before the final response is
    sent, by the model that computed the request or by the scheduler that forwarded it.
    """

    start_ns: int = 0
    input_ns: int = 0
    infer_ns: int = 0
    output_ns: int = 0

    @classmethod
    def of(cls, batch: Batch, end_ns: int) -> ComputeTimes:
        """Return the times of each request of `batch` whose response was ready at `end_ns`."""
        return cls(
            batch.start_ns,
            batch.input_end_ns - batch.start_ns,
            batch.infer_end_ns - batch.input_end_ns,
            max(end_ns - batch.infer_end_ns, 0),
        )

    def add(self, part: ComputeTimes) -> None:
        """Add the times of a request that was made for this one."""
        self.input_ns += part.input_ns
        self.infer_ns += part.infer_ns
        self.output_ns += part.output_ns


def synthetic_parent(model_name: str, batch: Batch) -> InferRequest:
    """Return a request that represents the execution of `batch` as the parent of a call.

    No client sent it, and no response to it is delivered. It marks the call as one made by a model,
    which needs no admission. It also shows schedulers which instance is held during the call.
    """
    return InferRequest(model_name, {}, CallbackSink(_discard), batch=batch)


def _discard(_request: object, _response: object) -> None:
    """Discard the response."""
