"""Inference requests."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Protocol

import msgspec

from tritonpy.types.tensor import Tensor

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tritonpy.types.batch import Batch
    from tritonpy.types.cache_lookup import CacheLookup
    from tritonpy.types.compute_times import ComputeTimes
    from tritonpy.types.region import HeldRegions
    from tritonpy.types.response import InferResponse
    from tritonpy.types.sink import Sink

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
    inputs: dict[str, Tensor]  # its creator uses a dict; all others may only rely on Mapping
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
    compute_times: ComputeTimes | None = None  # set if a caller needs the costs: an ensemble for its steps
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
