"""The batch that a scheduler passes to an instance: the requests of one execution."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import msgspec

from tritonpy.clock import now_ns
from tritonpy.errors import Internal
from tritonpy.types.request import InferRequest
from tritonpy.types.response import InferResponse
from tritonpy.types.tensor import Tensor

if TYPE_CHECKING:
    from tritonpy.api.backend import ModelContext

NO_TENSORS: tuple[Tensor, ...] = ()


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
    model: ModelContext | None = None
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
        expected = f"expected a sequence of {count} InferResponse objects, one for each request of the batch"
        if isinstance(responses, str) or not isinstance(responses, Sequence):
            raise Internal(f"the backend responded with a value of type '{type(responses).__name__}', {expected}")
        if len(responses) != count:
            raise Internal(f"the backend sent {len(responses)} responses, {expected}")
