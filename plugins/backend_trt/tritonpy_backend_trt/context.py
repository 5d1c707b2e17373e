"""An execution context of TensorRT under one optimisation profile."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from tritonpy import DTYPES, Internal, InvalidArgument, shape_text
from tritonpy_backend_trt.limits import check_shape, check_values
from tritonpy_backend_trt.logger import listening, reason
from tritonpy_backend_trt.signature import Profile, Shape, Signature

Array = npt.NDArray[Any]
_UNSPECIFIED = "failed to specify the dimensions of all input tensors or values of all input shape tensors"
UNKNOWN = -1


class Context:
    """`raw` is the `IExecutionContext`; `profile` holds what a batch may look like, `name` is the profile's in the configuration.

    Used by one thread at a time.
    """

    def __init__(self, raw: Any, profile: Profile, name: str, signature: Signature, instance: str) -> None:
        self.raw = raw
        self.profile = profile
        self.name = name
        self.bound: object = None  # whose memory the tensors lie in
        self._signature = signature
        self._instance = instance
        self._specified: tuple[Mapping[str, Shape], Mapping[str, Sequence[int]]] | None = None
        self._kept: list[Array] = []  # what the context has addresses of
        self.outputs: dict[str, Shape] = {}  # shapes that follow from those of the inputs; -1 where the data decides

    def widest(self) -> None:
        """Give it the largest shapes and values that its profile allows, so that outputs have their largest sizes."""
        shapes = {
            name: allowed.maximum for name, allowed in self.profile.shapes.items() if name not in self.profile.values
        }
        for name, allowed in self.profile.values.items():
            values = np.array(allowed.maximum, DTYPES[self._signature.tensors[name].datatype])
            self._kept.append(values)
            self.put(name, values.ctypes.data)
        self.specify(shapes, {name: allowed.maximum for name, allowed in self.profile.values.items()})

    def specify(self, shapes: Mapping[str, Shape], values: Mapping[str, Sequence[int]]) -> None:
        """Give it the shapes of a batch's inputs; `values` of shape tensors lie where their addresses say.

        Raises Internal or InvalidArgument where the profile does not allow them.
        """
        if self._specified == (shapes, values):
            return
        self._specified = None
        for name, found in values.items():
            check_values(self.profile.values[name], found)
        for name, shape in shapes.items():
            check_shape(self._instance, name, self.profile.shapes[name], shape)
            if UNKNOWN in self._signature.tensors[name].dims and not self.raw.set_input_shape(name, shape):
                raise Internal(
                    f"trt failed to set binding dimension to {shape_text(shape)} for input '{name}' for {self._instance}"
                )
        if self.raw.infer_shapes():
            raise Internal(_UNSPECIFIED)
        self.outputs = {name: tuple(self.raw.get_tensor_shape(name)) for name in self._signature.outputs}
        self._specified = dict(shapes), dict(values)

    def put(self, name: str, address: int) -> None:
        """Say where a tensor lies."""
        if not self.raw.set_tensor_address(name, address):
            raise InvalidArgument(f"'{name}' does not map to an input or output tensor")

    def largest_output(self, name: str) -> int:
        """Return the bytes that an output takes at most, for the shapes that were given."""
        size = int(self.raw.get_max_output_size(name))
        if size < 0:
            raise Internal(f"unable to allocate memory for output '{name}' for {self._instance}")
        return size

    def enqueue(self, stream: int, consumed: int) -> None:
        """Put an execution on the stream; the event `consumed` (0: none) happens when the inputs may be written to again."""
        with listening() as errors:
            done = self.raw.set_input_consumed_event(consumed) and self.raw.execute_async_v3(stream)
        if not done:
            raise Internal(f"unable to enqueue for inference {self._instance}: {reason(errors)}")
