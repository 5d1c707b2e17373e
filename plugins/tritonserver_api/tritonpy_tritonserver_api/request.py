"""Requests to models."""

from __future__ import annotations

import asyncio
import queue
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import tritonpy
from tritonpy_tritonserver_api.errors import InvalidArgumentError
from tritonpy_tritonserver_api.tensor import DeviceOrMemoryType, Tensor, tensor_of, to_server

if TYPE_CHECKING:
    from tritonpy_tritonserver_api.model import Model

_START, _END = 1, 2  # flags
_PARAMETER_TYPES = (str, int, float, bool)


@dataclass
class InferenceRequest:
    """A request to a model. It may be sent several times.

    - `flags`: 1 starts the sequence `correlation_id`, 2 ends it; `timeout` is in microseconds.
    - `inputs`: by name, tensors or what `tensor_of` takes.
    - `output_memory_type`: the memory for outputs, such as "cpu" or "gpu:0"; None: any.
    - `response_queue`: gets each response in addition to the iterator: a `queue.SimpleQueue`, or an
      `asyncio.Queue` for `async_infer`.
    """

    model: Model
    request_id: str | None = None
    flags: int = 0
    correlation_id: int | str | None = None
    priority: int = 0
    timeout: int = 0
    inputs: dict[str, Tensor | Any] = field(default_factory=dict)
    parameters: dict[str, str | int | bool | float] = field(default_factory=dict)
    output_memory_type: DeviceOrMemoryType | None = None
    response_queue: queue.SimpleQueue[Any] | asyncio.Queue[Any] | None = None

    def to_server(self, sink: Any) -> tritonpy.InferRequest:
        """Return the request of the server. Raises `InvalidArgumentError`."""
        sequence = None
        if self.correlation_id:
            sequence = tritonpy.SequenceInfo(
                self.correlation_id, bool(self.flags & _START), bool(self.flags & _END)
            )
        return tritonpy.InferRequest(
            self.model.name,
            {name: to_server(name, tensor_of(value)) for name, value in self.inputs.items()},
            sink,
            self.model.version,
            self.request_id or "",
            parameters=_checked(self.parameters),
            priority=self.priority,
            timeout_us=self.timeout,
            sequence=sequence,
            accepts_decoupled=True,
        )


def _checked(parameters: Mapping[str, Any]) -> dict[str, tritonpy.ParameterValue]:
    for value in parameters.values():
        if type(value) not in _PARAMETER_TYPES:
            raise InvalidArgumentError(
                f"Unsupported Value. Can't convert {type(value)} to Request Parameter"
            )
    return dict(parameters)
