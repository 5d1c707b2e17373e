"""What is noted of a request that is traced."""

from __future__ import annotations

import enum
import itertools
import threading
from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, Any, NamedTuple

from tritonpy.clock import now_ns
from tritonpy.types.tensor import Tensor

if TYPE_CHECKING:
    from tritonpy.types.request import InferRequest
    from tritonpy.types.response import InferResponse

_ids = itertools.count(1)


class TraceLevel(enum.IntFlag):
    """What is noted; several at once, with Triton's numbers."""

    OFF = 0
    TIMESTAMPS = 4
    TENSORS = 8


class TimeStamp(NamedTuple):
    """A moment on the server's monotonic clock."""

    name: str
    ns: int


class TensorCopy(NamedTuple):
    """A tensor as it was at some activity; its data is a copy in host memory."""

    activity: str
    tensor: Tensor


class TraceFamily:
    """The trace of a client's request and those of the requests that models made for it: they are written together.

    `ended` is called once, in the thread that ends the last of them; `begun` when the model of one is known. `rule` is what chose the
    request, `caller` what the client sent of a trace of its own, `state` belongs to the sink. Its times are on the server's monotonic clock.
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
        """Return a new member; None when all the others have ended, as then they are on their way to be written."""
        with self._lock:
            if self.traces and not self._open:
                return None
            self._open += 1
            trace = Trace(self, parent_id)
            self.traces.append(trace)
        return trace

    def member_ended(self) -> None:
        """Take note that one more has ended."""
        with self._lock:
            self._open -= 1
            over = not self._open
        if over:
            self.ended_ns = now_ns()
            self._ended(self)


class Trace:
    """One request's. The text of it is the context that a model may hand on: JSON, empty where there is none.

    Whoever made it (a frontend; for requests of models the core) ends it. Notes may come from any thread.
    """

    __slots__ = (
        "_before", "_complete", "_ended", "context", "family", "id", "model_name", "model_version", "notes", "parent_id",
        "request_id",
    )  # fmt: skip

    def __init__(self, family: TraceFamily, parent_id: int) -> None:
        self.id = next(_ids)
        self.parent_id = parent_id
        self.family = family
        self.model_name = self.request_id = self.context = ""
        self.model_version = -1
        self.notes: list[TimeStamp | TensorCopy] = []
        self._before = -1
        self._complete = self._ended = False

    def __str__(self) -> str:
        return self.context

    def stamp(self, name: str, ns: int = 0) -> None:
        """Note a moment, now unless `ns` says which."""
        if self.family.level & TraceLevel.TIMESTAMPS:
            self.notes.append(TimeStamp(name, ns or now_ns()))

    def stamps(self) -> Iterator[TimeStamp]:
        """Give the moments that were noted."""
        return (note for note in self.notes if isinstance(note, TimeStamp))

    def tensors(self, activity: str, tensors: Iterable[Tensor]) -> None:
        """Note what the tensors hold now."""
        if self.family.level & TraceLevel.TENSORS:
            self.notes += [TensorCopy(activity, _copied(tensor)) for tensor in tensors]

    def begin(self, model_name: str, model_version: int, request: InferRequest) -> None:
        """Note that a model takes the request; where it turns out to be gone, another one does and this is called again."""
        if self._before < 0:
            self._before = len(self.notes)
        del self.notes[self._before :]
        self.model_name, self.model_version, self.request_id = model_name, model_version, request.id
        self.stamp("REQUEST_START", max(request.received_ns, self.family.begun_ns))
        self.stamp("QUEUE_START", request.queued_ns)
        # Triton tells nothing of an input without data
        self.tensors("TENSOR_QUEUE_INPUT", [tensor for tensor in request.inputs.values() if tensor.nbytes])
        self.family.begun(self)

    def answered(self, request: InferRequest, response: InferResponse, now: int) -> None:
        """Note an answer; the final one tells when its model computed, and ends the trace of a request that a model made."""
        regions = request.regions
        self.tensors("TENSOR_BACKEND_OUTPUT", response.outputs if regions is None else regions.outputs(response))
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
        """Return the trace of a request that the model makes for this one; None when this one is over."""
        return self.family.trace(self.id)

    def end(self) -> None:
        """Take no further note of it (whoever made the trace calls this once, further calls do nothing)."""
        if not self._ended:
            self._ended = True
            self.family.member_ended()


def _copied(tensor: Tensor) -> Tensor:
    # the data may lie in memory that is only lent
    data = tensor.data.copy() if tensor.datatype == "BYTES" else tensor.numpy().copy()
    return Tensor(tensor.name, tensor.datatype, tensor.shape, data)
