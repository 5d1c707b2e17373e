"""TensorRT execution context with an optimization profile."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from tritonpy import DTYPES, Internal, InvalidArgument
from tritonpy.config import shape_text
from tritonpy_backend_trt.limits import check_shape, check_values
from tritonpy_backend_trt.logger import collect_errors, last_error
from tritonpy_backend_trt.signature import Profile, Shape, Signature

Array = npt.NDArray[Any]
_UNSPECIFIED_SHAPES = (
    "failed to specify the dimensions of all input tensors or values of all input shape tensors"
)
UNKNOWN = -1


class ExecutionContext:
    """An `IExecutionContext` (`raw`) with its optimization profile.

    `name` is the profile's name in the configuration. Not thread-safe.
    """

    def __init__(
        self, raw: Any, profile: Profile, name: str, signature: Signature, instance: str
    ) -> None:
        self.raw = raw
        self.profile = profile
        self.name = name
        self.bound: object = None  # the buffer set that the tensors are bound to
        self._signature = signature
        self._instance = instance
        self._current_inputs: tuple[Mapping[str, Shape], Mapping[str, Sequence[int]]] | None = None
        self._kept: list[Array] = []  # arrays whose addresses the context holds
        # output shapes for the current input shapes; -1 if they depend on the data
        self.outputs: dict[str, Shape] = {}

    def set_maximum_inputs(self) -> None:
        """Set the largest input shapes and values of the profile.

        Outputs then have their maximum size.
        """
        shapes = {
            name: allowed.maximum
            for name, allowed in self.profile.shapes.items()
            if name not in self.profile.values
        }
        for name, allowed in self.profile.values.items():
            values = np.array(allowed.maximum, DTYPES[self._signature.tensors[name].datatype])
            self._kept.append(values)
            self.set_address(name, values.ctypes.data)
        self.set_inputs(
            shapes, {name: allowed.maximum for name, allowed in self.profile.values.items()}
        )

    def set_inputs(self, shapes: Mapping[str, Shape], values: Mapping[str, Sequence[int]]) -> None:
        """Set the input shapes of a batch.

        Shape tensor `values` must already be at their addresses. Raises `Internal` or
        `InvalidArgument` if the profile does not allow them.
        """
        if self._current_inputs == (shapes, values):
            return
        self._current_inputs = None
        for name, found in values.items():
            check_values(self.profile.values[name], found)
        for name, shape in shapes.items():
            check_shape(self._instance, name, self.profile.shapes[name], shape)
            if UNKNOWN in self._signature.tensors[name].dims and not self.raw.set_input_shape(
                name, shape
            ):
                raise Internal(
                    f"trt failed to set binding dimension to {shape_text(shape)} for input "
                    f"'{name}' for {self._instance}"
                )
        if self.raw.infer_shapes():
            raise Internal(_UNSPECIFIED_SHAPES)
        self.outputs = {
            name: tuple(self.raw.get_tensor_shape(name)) for name in self._signature.outputs
        }
        self._current_inputs = dict(shapes), dict(values)

    def set_address(self, name: str, address: int) -> None:
        """Set the address of a tensor."""
        if not self.raw.set_tensor_address(name, address):
            raise InvalidArgument(f"'{name}' does not map to an input or output tensor")

    def largest_output(self, name: str) -> int:
        """Return the maximum size in bytes of an output for the current input shapes."""
        size = int(self.raw.get_max_output_size(name))
        if size < 0:
            raise Internal(f"unable to allocate memory for output '{name}' for {self._instance}")
        return size

    def enqueue(self, stream: int, consumed: int) -> None:
        """Enqueue an execution on `stream`.

        The event `consumed` (0: none) is recorded when the inputs may be overwritten.
        """
        with collect_errors() as errors:
            done = self.raw.set_input_consumed_event(consumed) and self.raw.execute_async_v3(stream)
        if not done:
            raise Internal(
                f"unable to enqueue for inference {self._instance}: {last_error(errors)}"
            )
