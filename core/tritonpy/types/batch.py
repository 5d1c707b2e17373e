"""What a scheduler hands to an instance: the requests of one execution."""

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
    """One execution: its requests, and what the scheduler adds to them.

    `slots` is None for a plain batch; in a direct sequence batch it has one entry per slot, None where a slot has no
    data. `controls` and `states` hold tensors for the whole batch, one row per slot (or per request without slots). Outputs named in `state_outputs` are
    left in `new_states`, whole, for the scheduler to take back. A state whose array may be written to is the one buffer of its sequence:
    a backend may compute the new state in it and return it.
    """

    requests: list[InferRequest]
    slots: Sequence[InferRequest | None] | None = None
    controls: Sequence[Tensor] = NO_TENSORS
    states: Sequence[Tensor] = NO_TENSORS
    state_outputs: Sequence[str] = ()
    new_states: dict[str, Tensor] = msgspec.field(default_factory=dict)
    # Filled in by the runner before the backend sees the batch.
    model: ModelContext | None = None
    instance: Any = None
    start_ns: int = 0
    input_end_ns: int = 0
    infer_end_ns: int = 0
    counted: bool = False  # its execution is in the statistics
    executing: bool = False  # its instance is busy with it

    @property
    def size(self) -> int:
        """Rows along the batch dimension: the sum of the requests' batch sizes, or the slots."""
        if self.slots is not None:
            return len(self.slots)
        return sum([request.batch_size for request in self.requests])

    def stamp(self) -> None:
        """Mark the end of input (first call), then the end of inference (each later call)."""
        if self.input_end_ns:
            self.infer_end_ns = now_ns()
        else:
            self.input_end_ns = now_ns()

    def respond(self, responses: Sequence[InferResponse]) -> None:
        """Answer every request of the batch at once, in their order: cheaper than one at a time."""
        requests = self.requests
        if type(responses) is not list or len(responses) != len(requests):
            self._check(responses)
        if requests:
            requests[0].owner.answer(requests, responses)

    def _check(self, responses: object) -> None:
        count = len(self.requests)
        expected = f"expected a sequence of {count} InferResponse objects, one for each request of the batch"
        if isinstance(responses, str) or not isinstance(responses, Sequence):
            raise Internal(f"the backend answered with a value of type '{type(responses).__name__}', {expected}")
        if len(responses) != count:
            raise Internal(f"the backend answered with {len(responses)} responses, {expected}")
