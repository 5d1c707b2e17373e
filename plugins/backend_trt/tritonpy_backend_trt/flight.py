"""One execution on its way through the GPU."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from tritonpy import Batch, Tensor
from tritonpy_backend_trt.cuda import Cuda


class Events(NamedTuple):
    """What happens to an execution: its inputs are on the GPU, they may be written to again, it has run, its outputs are on the host."""

    arrived: int
    consumed: int
    computed: int
    returned: int


class EventPool:
    """Events of one instance; whose device is current may take them, anybody gives them back."""

    def __init__(self, cuda: Cuda, busy_wait: bool) -> None:
        self._cuda = cuda
        self._busy_wait = busy_wait
        self._free: deque[Events] = deque()

    def take(self) -> Events:
        """Return events that nobody waits for."""
        try:
            return self._free.popleft()
        except IndexError:
            return Events(*[self._cuda.event(self._busy_wait) for _ in Events._fields])

    def give(self, events: Events) -> None:
        """Take events back."""
        self._free.append(events)

    def close(self) -> None:
        """Destroy what was given back."""
        while self._free:
            for event in self._free.popleft():
                self._cuda.end_event(event)


@dataclass(slots=True, eq=False)
class Flight:
    """`outputs` are host tensors that are being written, `values` shape tensors to be read when it has run; `kept` must live until it is over."""

    batch: Batch
    events: Events
    kept: list[Any]
    outputs: dict[str, Tensor] = field(default_factory=dict)
    values: Mapping[str, Any] = field(default_factory=dict)
    over: bool = False
