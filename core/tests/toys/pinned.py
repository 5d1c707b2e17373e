"""A scheduler that pins sequences to slots of an instance, and a backend that sums a sequence."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping, Sequence

import numpy as np

from tritonpy.api.backend import Array, Backend
from tritonpy.api.scheduler import UNBOUNDED, Scheduler, SchedulerContext
from tritonpy_types import Batch, InferRequest, Tensor
from tritonpy_types.errors import Unavailable

CONFIG = """
    backend: "accumulate"
    max_batch_size: 4
    input { name: "IN" data_type: TYPE_INT32 dims: 1 }
    output { name: "OUT" data_type: TYPE_INT32 dims: 1 }
    sequence_batching {
      direct {}
      control_input {
        name: "READY"
        control { kind: CONTROL_SEQUENCE_READY int32_false_true: [0, 1] }
      }
      state { input_name: "SUM_IN" output_name: "SUM_OUT" data_type: TYPE_INT32 dims: 1 }
    }
"""


class _Slot:
    """One slot of one instance: its sequence, the waiting requests, and the state between executions."""

    def __init__(self) -> None:
        self.sequence: int | str | None = None
        self.waiting: deque[InferRequest] = deque()
        self.running = False
        self.state = 0


class PinnedScheduler(Scheduler):
    """Assigns the first free slot to a sequence until its last request is finished.

    A sequence without a free slot is refused.
    """

    def __init__(self, context: SchedulerContext) -> None:
        super().__init__(context)
        self._instances: list[list[_Slot]] = []
        self._slots: dict[int | str, _Slot] = {}

    def instances_changed(self, instances: Sequence[int]) -> None:
        self._instances = [
            [_Slot() for _ in range(self.context.config.max_batch_size)] for _ in instances
        ]

    def enqueue(self, request: InferRequest) -> None:
        assert request.sequence is not None
        slot = self._slots.get(request.sequence.id)
        if slot is None:
            slot = next(
                (slot for slots in self._instances for slot in slots if slot.sequence is None), None
            )
        if slot is None:
            raise Unavailable(f"no free slot for sequence {request.sequence.id}")
        slot.sequence = request.sequence.id
        self._slots[request.sequence.id] = slot
        slot.waiting.append(request)

    def ready(self, instance: int, now_ns: int) -> bool:
        return any(slot.waiting and not slot.running for slot in self._instances[instance])

    def take(self, instance: int, now_ns: int, limit: int = UNBOUNDED) -> Batch | None:
        slots = self._instances[instance]
        taken = [
            slot.waiting.popleft() if slot.waiting and not slot.running else None for slot in slots
        ]
        for slot, request in zip(slots, taken, strict=True):
            slot.running = slot.running or request is not None
        ready = np.array([[request is not None] for request in taken], np.int32)
        state = np.array([[slot.state] for slot in slots], np.int32)
        return Batch(
            [request for request in taken if request is not None],
            slots=taken,
            controls=[Tensor.from_numpy("READY", ready)],
            states=[Tensor.from_numpy("SUM_IN", state)],
            state_outputs=["SUM_OUT"],
        )

    def released(self, request: InferRequest, reschedule: bool) -> None:
        assert request.sequence is not None
        slot, batch = self._slots[request.sequence.id], request.batch
        assert batch is not None
        assert batch.slots is not None
        slot.running = False
        if "SUM_OUT" in batch.new_states:
            slot.state = int(
                batch.new_states["SUM_OUT"].numpy()[list(batch.slots).index(request), 0]
            )
        if request.sequence.end:
            del self._slots[request.sequence.id]
            slot.sequence, slot.state = None, 0


class Accumulate(Backend):
    """OUT = the sum of the sequence so far; controls and states are inputs of `infer`."""

    def infer(self, inputs: Mapping[str, Array]) -> Mapping[str, Array]:
        total = (inputs["SUM_IN"] + inputs["IN"]) * inputs["READY"]
        return {"OUT": total, "SUM_OUT": total}
