"""Where the tensors of an execution lie: on the GPU, those of shape tensors on the host."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from tritonpy import DTYPES, DeviceBlock, ModelMemory
from tritonpy_backend_trt.context import UNKNOWN, Context
from tritonpy_backend_trt.inputs import address
from tritonpy_backend_trt.output_allocator import Growing, output_allocator
from tritonpy_backend_trt.signature import Signature
from tritonpy_backend_trt.sizes import input_sizes

if TYPE_CHECKING:
    from tritonpy_backend_trt.flight import Flight

Array = npt.NDArray[Any]


@dataclass(slots=True, eq=False)
class BufferSet:
    """Memory for all tensors of one execution. `growing` are the outputs whose size the data decides, `flight` is who used it last."""

    blocks: Mapping[str, DeviceBlock]
    values: Mapping[str, Array]
    growing: Mapping[str, Growing]
    allocators: Mapping[str, Any]
    flight: Flight | None = field(default=None)

    def bind(self, context: Context) -> None:
        """Let `context` read and write here."""
        if context.bound is self:
            return
        context.bound = None
        for name, place in self._places():
            context.put(name, place)
        for name, allocator in self.allocators.items():
            context.raw.set_output_allocator(name, allocator)
        context.bound = self

    def _places(self) -> Iterator[tuple[str, int]]:
        for name, block in self.blocks.items():
            yield name, block.address
        for name, array in self.values.items():
            yield name, address(array)


@dataclass(frozen=True, slots=True)
class BufferPlan:
    """Bytes of each tensor on the GPU, numbers of each on the host, and the outputs whose size is not known before."""

    blocks: Mapping[str, int]
    values: Mapping[str, int]
    growing: Sequence[str]


def buffer_plan(signature: Signature, contexts: Sequence[Context]) -> BufferPlan:
    """Return what the largest executions under the profiles of `contexts` need; each has to be at its widest."""
    blocks = dict(input_sizes(signature, [context.profile for context in contexts]))
    values: dict[str, int] = {}
    growing = []
    for name, info in signature.tensors.items():
        if info.is_shape:
            values[name] = info.dims[0] if info.dims else 1
        elif not info.is_input:
            if any(UNKNOWN in context.outputs[name] for context in contexts):
                growing.append(name)
            else:
                blocks[name] = max(context.largest_output(name) for context in contexts)
    return BufferPlan(blocks, values, growing)


def buffer_set(trt: Any, memory: ModelMemory, gpu: int, signature: Signature, plan: BufferPlan) -> BufferSet:
    """Return memory as planned; raises Unavailable where the GPU has none left."""

    def on_device(size: int) -> DeviceBlock:
        return memory.on_device(gpu, size)

    growing = {name: Growing(on_device) for name in plan.growing}
    return BufferSet(
        {name: on_device(max(size, 1)) for name, size in plan.blocks.items()},
        {name: np.zeros(count, DTYPES[signature.tensors[name].datatype]) for name, count in plan.values.items()},
        growing,
        {name: output_allocator(trt, each) for name, each in growing.items()},
    )
