"""Traces of requests: time stamps and copies of tensors."""

from __future__ import annotations

import enum
import itertools
import threading
from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, Any, NamedTuple

from tritonpy_types.clock import now_ns
from tritonpy_types.tensor import Tensor

if TYPE_CHECKING:
    from tritonpy_types.request import InferRequest, InferResponse

_ids = itertools.count(1)


class TraceLevel(enum.IntFlag):
    """The kinds of trace data, as flags with Triton's numbers."""

    OFF = 0
    TIMESTAMPS = 4
    TENSORS = 8


class TimeStamp(NamedTuple):
    """A point in time on the server's monotonic clock."""

    name: str
    ns: int


class TensorCopy(NamedTuple):
    """A copy of a tensor in host memory, made at the given activity."""

    activity: str
    tensor: Tensor


class TraceFamily:
    """The traces of a client's request and of the requests that models made for it.

    They are written together. `begun` is called when the model of a member is known. `ended` is
    called once, in the thread that ends the last member. `rule` is the setting that selected the
    request, `caller` is the client's own trace context, and `state` is for the sink. Times are on
    the server's monotonic clock.
    """

    def __init__(
        self,
        level: TraceLevel,
        rule: Any,
        caller: Any,
        begun: Callable[[Trace], None],
        ended: Callable[[TraceFamily], None],
    ) -> None:
        self.level = level
        self.rule = rule
        self.caller = caller
        self.begun = begun
        self.traces: list[Trace] = []
        self.state: Any = None
        self.begun_ns = now_ns()
        self.ended_ns = 0
        self._ended = ended
        self._open = 0
        self._lock = threading.Lock()

    def trace(self, parent_id: int = 0) -> Trace | None:
        """Return a new member; None if all others have ended, since they are then being written."""
        with self._lock:
            if self.traces and not self._open:
                return None
            self._open += 1
            trace = Trace(self, parent_id)
            self.traces.append(trace)
        return trace

    def member_ended(self) -> None:
        """Record that a member has ended."""
        with self._lock:
            self._open -= 1
            over = not self._open
        if over:
            self.ended_ns = now_ns()
            self._ended(self)


class Trace:
    """The trace of one request.

    `str(trace)` is the context that a model may pass on: JSON, or empty. The creator ends the
    trace: a frontend, or the core for requests of models. Any thread may add records.
    `attributes` describe the call in the terms of its protocol, by the names of OpenTelemetry.
    """

    __slots__ = (
        "_before", "_complete", "_ended", "attributes", "context", "family", "id", "model_name",
        "model_version", "notes", "parent_id", "request_id",
    )  # fmt: skip

    def __init__(self, family: TraceFamily, parent_id: int) -> None:
        self.id = next(_ids)
        self.parent_id = parent_id
        self.family = family
        self.model_name = self.request_id = self.context = ""
        self.model_version = -1
        self.notes: list[TimeStamp | TensorCopy] = []
        self.attributes: dict[str, str | int | list[str]] = {}
        self._before = -1
        self._complete = self._ended = False

    def __str__(self) -> str:
        return self.context

    def stamp(self, name: str, ns: int = 0) -> None:
        """Record a point in time: `ns`, or now."""
        if self.family.level & TraceLevel.TIMESTAMPS:
            self.notes.append(TimeStamp(name, ns or now_ns()))

    def stamps(self) -> Iterator[TimeStamp]:
        """Return the recorded points in time."""
        return (note for note in self.notes if isinstance(note, TimeStamp))

    def tensors(self, activity: str, tensors: Iterable[Tensor]) -> None:
        """Record copies of the tensors."""
        if self.family.level & TraceLevel.TENSORS:
            self.notes += [TensorCopy(activity, _copied(tensor)) for tensor in tensors]

    def begin(self, model_name: str, model_version: int, request: InferRequest) -> None:
        """Record that a model takes the request; called again if another one must take it."""
        if self._before < 0:
            self._before = len(self.notes)
        del self.notes[self._before :]
        self.model_name, self.model_version, self.request_id = model_name, model_version, request.id
        self.stamp("REQUEST_START", max(request.received_ns, self.family.begun_ns))
        self.stamp("QUEUE_START", request.queued_ns)
        # Triton records nothing for an input without data
        self.tensors(
            "TENSOR_QUEUE_INPUT", [tensor for tensor in request.inputs.values() if tensor.nbytes]
        )
        self.family.begun(self)

    def responded(self, request: InferRequest, response: InferResponse, now: int) -> None:
        """Record a response.

        The final one adds the times of the execution. It also ends the trace if a model made the
        request.
        """
        regions = request.regions
        self.tensors(
            "TENSOR_BACKEND_OUTPUT",
            response.outputs if regions is None else regions.outputs(response),
        )
        if not self._complete and not self.parent_id:
            self._complete = True
            self.stamp("INFER_RESPONSE_COMPLETE", now)
        if not response.final:
            return
        batch = request.batch
        if batch is not None and batch.start_ns:
            self.stamp("COMPUTE_START", batch.start_ns)
            self.stamp("COMPUTE_INPUT_END", batch.input_end_ns)
            self.stamp("COMPUTE_OUTPUT_START", batch.infer_end_ns)
            self.stamp("COMPUTE_END", now)
        self.stamp("REQUEST_END", now)
        if self.parent_id:
            self.end()

    def spawn(self) -> Trace | None:
        """Return the trace of a request that the model makes for this one; None after its end."""
        return self.family.trace(self.id)

    def end(self) -> None:
        """End the trace; its creator calls this once, further calls do nothing."""
        if not self._ended:
            self._ended = True
            self.family.member_ended()


def _copied(tensor: Tensor) -> Tensor:
    # the memory of the data may be reused after the request
    data = tensor.data.copy() if tensor.datatype == "BYTES" else tensor.numpy().copy()
    return Tensor(tensor.name, tensor.datatype, tensor.shape, data)
