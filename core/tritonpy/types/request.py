"""A request for inference, and its one way to be answered."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Protocol

import msgspec

from tritonpy.types.tensor import Tensor

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tritonpy.types.batch import Batch
    from tritonpy.types.cache_look import CacheLook
    from tritonpy.types.region import HeldRegions
    from tritonpy.types.response import InferResponse
    from tritonpy.types.sink import Sink
    from tritonpy.types.work import Work

ParameterValue = str | int | bool | float
NO_PARAMETERS: Mapping[str, ParameterValue] = {}


class OutputSpec(msgspec.Struct, frozen=True, gc=False):
    """What a client wants of one output.

    `classification` > 0 asks for that many classes; `region` names a shared-memory region that takes the data at
    `offset`, `byte_size` bytes at most. `binary` is the frontend's own: how it will write the data.
    """

    name: str
    classification: int = 0
    region: str = ""
    offset: int = 0
    byte_size: int = 0
    binary: bool = False


class SequenceInfo(msgspec.Struct, frozen=True, gc=False):
    """The sequence that a request belongs to; `id` is a non-zero integer or a non-empty text."""

    id: int | str
    start: bool = False
    end: bool = False


class Owner(Protocol):
    """Who holds a request between `Engine.infer` and its release: the loaded model."""

    def answer(self, requests: Sequence[InferRequest], responses: Sequence[InferResponse]) -> None:
        """Pass on one response per request; late ones are dropped and counted."""

    def reschedule(self, request: InferRequest) -> None:
        """Hand `request` back to the scheduler for another execution."""

    def cancel(self, request: InferRequest) -> None:
        """Drop `request` from the queue if it still waits there."""


class _Unowned:
    """Stands in until a model owns the request."""

    def answer(self, requests: Sequence[InferRequest], responses: Sequence[InferResponse]) -> None:
        for request, response in zip(requests, responses, strict=True):
            if not request.answered:
                request.answered = response.final
                request.sink.put(request, response)

    def reschedule(self, request: InferRequest) -> None:
        """Nothing schedules it."""

    def cancel(self, request: InferRequest) -> None:
        """Nothing queues it."""


UNOWNED = _Unowned()


class InferRequest(msgspec.Struct, eq=False, weakref=True):
    """One request, from any frontend, an ensemble step or a model that calls another.

    Ownership: the caller owns it until `Engine.infer` returns; from then on the model does, and the sink gets any
    number of answers of which exactly one is final. The inputs are never changed and live until that final answer.
    `timeout_us` is the protocol's request time-out, which only a queue policy acts on; `deadline_ns` is absolute on the
    server's clock (0: none) and cancels the request wherever it is. `model_version` -1 means the newest ready one.
    """

    model_name: str
    inputs: dict[str, Tensor]  # a dict while it is made; whoever is handed it may count on a Mapping
    sink: Sink
    model_version: int = -1
    id: str = ""
    outputs: dict[str, OutputSpec] | None = None  # None: every output of the model
    parameters: Mapping[str, ParameterValue] = NO_PARAMETERS
    priority: int = 0
    timeout_us: int = 0
    deadline_ns: int = 0
    sequence: SequenceInfo | None = None
    accepts_decoupled: bool = False  # False: the caller takes exactly one answer
    classifies: bool = False  # some output asks for classes
    uses_regions: bool = False  # the data of some input is a RegionSlice, or some output names a region
    tag: Any = None  # the sink's own
    principal: Any = None
    headers: Mapping[str, str] | None = None
    trace: Any = None
    parent: InferRequest | None = None
    stops_loop: bool = False  # whoever made it waits on its model's event loop, whose coroutines stand still meanwhile
    went_on: bool = False  # whoever made it goes on after its execution: no instance is held for it
    work: Work | None = None  # where somebody wants to know what it costs: an ensemble, of its steps
    received_ns: int = 0
    queued_ns: int = 0
    # What the engine and the model know of it; frontends and backends read, only those two write.
    regions: HeldRegions | None = None
    owner: Owner = UNOWNED
    batch: Batch | None = None
    cache: CacheLook | None = None
    batch_size: int = 1
    lost_workers: int = 0  # worker processes that had it when they ended
    unchecked_strings: bool = False
    answered: bool = False
    cancelled: bool = False

    def respond(self, response: InferResponse) -> None:
        """Send one answer, from any thread; after the final one further answers are dropped and counted."""
        self.owner.answer((self,), (response,))

    def reschedule(self) -> None:
        """Hand the request back for another execution, instead of a final answer.

        It leaves its instance and waits again; a scheduler without that notion answers it with an error.
        """
        self.owner.reschedule(self)

    def cancel(self) -> None:
        """Ask to stop, from any thread: dropped if it waits, left to the backend's goodwill if it runs."""
        self.cancelled = True
        self.owner.cancel(self)
        self.sink.cancelled(self)

    def wait_for_room(self) -> bool:
        """Block until the stream of this request has room; for decoupled backends, before each answer that is not the final one.

        Returns False when the request was cancelled, before or meanwhile: nobody waits for further answers. Where there is room it costs one call.
        """
        sink = self.sink
        if not sink.ready(self) and not self.cancelled:
            room = threading.Event()
            sink.when_ready(self, room.set)
            if (
                not self.cancelled
            ):  # whoever cancels sets this first and then calls back who waits: one of the two is seen
                room.wait()
        return not self.cancelled
