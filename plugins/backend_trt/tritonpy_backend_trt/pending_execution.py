"""Executions in flight on the GPU, and their CUDA events."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from tritonpy import Batch, Tensor
from tritonpy_backend_trt.cuda import Cuda


class Events(NamedTuple):
    """CUDA events of one execution.

    They are recorded when the inputs are on the GPU, when they may be overwritten, when the engine
    has run, and when the outputs are on the host.
    """

    arrived: int
    consumed: int
    computed: int
    returned: int


class EventPool:
    """Pool of the events of one instance.

    `acquire` and `close` need the instance's device to be current; `release` may be called
    anywhere.
    """

    def __init__(self, cuda: Cuda, busy_wait: bool) -> None:
        self._cuda = cuda
        self._busy_wait = busy_wait
        self._free: deque[Events] = deque()

    def acquire(self) -> Events:
        """Return unused events."""
        try:
            return self._free.popleft()
        except IndexError:
            return Events(*[self._cuda.create_event(self._busy_wait) for _ in Events._fields])

    def release(self, events: Events) -> None:
        """Return events to the pool."""
        self._free.append(events)

    def close(self) -> None:
        """Destroy the events in the pool."""
        while self._free:
            for event in self._free.popleft():
                self._cuda.destroy_event(event)


@dataclass(slots=True, eq=False)
class PendingExecution:
    """One execution in flight.

    `outputs` are host tensors that the GPU writes. `values` are shape tensors to read when the
    engine has run. `kept` holds objects that must live until the execution is over.
    """

    batch: Batch
    events: Events
    kept: list[Any]
    outputs: dict[str, Tensor] = field(default_factory=dict)
    values: Mapping[str, Any] = field(default_factory=dict)
    over: bool = False
