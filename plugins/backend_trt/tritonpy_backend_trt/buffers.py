"""Buffers for the tensors of an execution: on the GPU, or on the host for shape tensors."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from tritonpy import DTYPES, ModelMemory
from tritonpy.execution import DeviceBlock
from tritonpy_backend_trt.context import UNKNOWN, ExecutionContext
from tritonpy_backend_trt.inputs import address
from tritonpy_backend_trt.output_allocator import GrowableBuffer, output_allocator
from tritonpy_backend_trt.signature import Signature
from tritonpy_backend_trt.sizes import input_sizes

if TYPE_CHECKING:
    from tritonpy_backend_trt.pending_execution import PendingExecution

Array = npt.NDArray[Any]


@dataclass(slots=True, eq=False)
class BufferSet:
    """Memory for all tensors of one execution.

    `growable` are the outputs whose size depends on the data. `execution` is the last one that used
    the buffers.
    """

    blocks: Mapping[str, DeviceBlock]
    values: Mapping[str, Array]
    growable: Mapping[str, GrowableBuffer]
    allocators: Mapping[str, Any]
    execution: PendingExecution | None = field(default=None)

    def bind(self, context: ExecutionContext) -> None:
        """Make `context` read from and write to these buffers."""
        if context.bound is self:
            return
        context.bound = None
        for name, place in self._addresses():
            context.set_address(name, place)
        for name, allocator in self.allocators.items():
            context.raw.set_output_allocator(name, allocator)
        context.bound = self

    def _addresses(self) -> Iterator[tuple[str, int]]:
        for name, block in self.blocks.items():
            yield name, block.address
        for name, array in self.values.items():
            yield name, address(array)


@dataclass(frozen=True, slots=True)
class BufferPlan:
    """Required buffers: bytes per GPU tensor, elements per host tensor, and growable outputs."""

    blocks: Mapping[str, int]
    values: Mapping[str, int]
    growable: Sequence[str]


def buffer_plan(signature: Signature, contexts: Sequence[ExecutionContext]) -> BufferPlan:
    """Return the buffers for the largest executions under the profiles of `contexts`.

    The inputs of each context must be set to their maximum shapes.
    """
    blocks = dict(input_sizes(signature, [context.profile for context in contexts]))
    values: dict[str, int] = {}
    growable = []
    for name, info in signature.tensors.items():
        if info.is_shape:
            values[name] = info.dims[0] if info.dims else 1
        elif not info.is_input:
            if any(UNKNOWN in context.outputs[name] for context in contexts):
                growable.append(name)
            else:
                blocks[name] = max(context.largest_output(name) for context in contexts)
    return BufferPlan(blocks, values, growable)


def buffer_set(
    trt: Any, memory: ModelMemory, gpu: int, signature: Signature, plan: BufferPlan
) -> BufferSet:
    """Allocate the planned buffers; raise `Unavailable` if the GPU has no memory left."""

    def on_device(size: int) -> DeviceBlock:
        return memory.on_device(gpu, size)

    growable = {name: GrowableBuffer(on_device) for name in plan.growable}
    return BufferSet(
        {name: on_device(max(size, 1)) for name, size in plan.blocks.items()},
        {
            name: np.zeros(count, DTYPES[signature.tensors[name].datatype])
            for name, count in plan.values.items()
        },
        growable,
        {name: output_allocator(trt, each) for name, each in growable.items()},
    )
