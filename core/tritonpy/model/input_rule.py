"""What one input of a model must be like."""

from __future__ import annotations

from math import prod
from typing import TYPE_CHECKING

import numpy as np

from tritonpy.config.dims import MAX_SIZE, WILDCARD, dims_text
from tritonpy.ipc.string_walk import Refusal
from tritonpy.model.string_walk import string_refusal, strings_fit
from tritonpy.types import CPU, DATATYPE_OF_NUMBER, Tensor

if TYPE_CHECKING:
    from tritonpy_protos.model_config_pb2 import ModelInput

# A walk over a BYTES buffer of this size costs a few hundred us at most; larger ones are left to the instance's thread.
WALKED_AT_ONCE = 64 * 1024

_BATCH_NOTE = (
    "NOTE: Setting a non-zero max_batch_size in the model config requires a batch dimension to be prepended to each "
    "input shape. If you want to specify the full shape including the batch dim in your input dims config, try setting "
    "max_batch_size to zero. See the model configuration docs for more info on max_batch_size."
)


class InputRule:
    """One input as configured. `batched` says that a batch dimension stands before `dims`; a shape tensor never has one."""

    def __init__(self, config: ModelInput, batched: bool, model_name: str) -> None:
        kind = DATATYPE_OF_NUMBER[config.data_type]
        self.name = config.name
        self.model_name = model_name
        self.datatype = kind.name
        self.dims = tuple(config.dims)
        self.optional = config.optional
        self.batched = batched and not config.is_shape_tensor
        # In Triton's words a shape tensor has one too.
        self._expected, self._note = ((WILDCARD, *self.dims), _BATCH_NOTE) if batched else (self.dims, "")
        self.skip = 1 if self.batched else 0
        self.sized = not config.is_non_linear_format_io  # False: only the backend knows how many bytes belong to it
        self.itemsize = kind.itemsize
        # Of one row, where every dimension is fixed; -1 equals no size, and leads to the slower `fits`.
        self.row_bytes = -1 if WILDCARD in self.dims or not kind.itemsize else prod(self.dims) * kind.itemsize
        self._dtype = kind.dtype
        self._rank = len(self.dims) + self.skip
        self._fixed = [(index, dim) for index, dim in enumerate(self.dims, start=self.skip) if dim != WILDCARD]

    def fits(self, tensor: Tensor) -> bool:
        """Say whether `tensor` has type, shape and size of this input; large BYTES buffers are not walked."""
        shape, data = tensor.shape, tensor.data
        if tensor.datatype != self.datatype or len(shape) != self._rank:
            return False
        for index, dim in self._fixed:
            if shape[index] != dim:
                return False
        # An array of the right type and shape has the right size too: 2 us less than computing it.
        if type(data) is np.ndarray and data.dtype == self._dtype and data.shape == shape:
            return True
        return self._size_refusal(tensor) is None

    def left_unwalked(self, tensor: Tensor) -> bool:
        """Say whether `tensor` holds more text than is walked while its sender waits."""
        return self.datatype == "BYTES" and tensor.device == CPU and tensor.data.nbytes > WALKED_AT_ONCE

    def refusal(self, tensor: Tensor) -> Refusal | None:
        """Return what is wrong with `tensor` in Triton's words, or None."""
        name, model = self.name, self.model_name
        if tensor.datatype != self.datatype:
            return Refusal(
                f"inference input '{name}' data-type is '{tensor.datatype}', but model '{model}' expects "
                f"'{self.datatype}'"
            )
        return self._shape_refusal(tensor) or self._size_refusal(tensor)

    def _shape_refusal(self, tensor: Tensor) -> Refusal | None:
        sizes = tensor.shape[self.skip :]
        fits = len(sizes) == len(self.dims)
        for size, dim in zip(sizes, self.dims, strict=False) if fits else ():
            if size == WILDCARD:
                return Refusal(
                    f"All input dimensions should be specified for input '{self.name}' for model '{self.model_name}', "
                    f"got {dims_text(tensor.shape)}"
                )
            if dim not in (size, WILDCARD):
                fits = False
                break
        if fits:
            return None
        return Refusal(
            f"unexpected shape for input '{self.name}' for model '{self.model_name}'. Expected {dims_text(self._expected)}, got "
            f"{dims_text(tensor.shape)}. {self._note}"
        )

    def _size_refusal(self, tensor: Tensor) -> Refusal | None:
        shape, name = tensor.shape, self.name
        if not self.sized:
            return None
        if min(shape) < 0:
            where = dims_text(shape) if self.itemsize else f"in shape {dims_text(shape)}"
            return Refusal(f"tensor '{name}' contains an invalid dimension {where}", with_id=False)
        expected = prod(shape) * (self.itemsize or 1)
        if expected > MAX_SIZE:
            what = "byte size" if self.itemsize else "element count"
            return Refusal(f"{what} for tensor '{name}' exceeds maximum size of {MAX_SIZE}", with_id=False)
        if not self.itemsize:
            walked = self.left_unwalked(tensor) or strings_fit(tensor)
            return None if walked else string_refusal(tensor, self.model_name)
        return None if tensor.nbytes == expected else self.size_mismatch(expected, tensor.nbytes)

    def size_mismatch(self, expected: int, found: int) -> Refusal:
        """Return the refusal of `found` bytes where `expected` belong."""
        return Refusal(
            f"input byte size mismatch for input '{self.name}' for model '{self.model_name}'. Expected {expected}, got "
            f"{found}"
        )
