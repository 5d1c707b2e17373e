"""The check of one input: datatype, shape and size."""

from __future__ import annotations

from math import prod
from typing import TYPE_CHECKING

import numpy as np

from tritonpy.config.dims import MAX_SIZE, WILDCARD, dims_text
from tritonpy.model.string_check import find_string_error, has_matching_strings
from tritonpy.types import CPU, DATATYPE_OF_NUMBER, Tensor
from tritonpy_ipc.string_check import InputError

if TYPE_CHECKING:
    from tritonpy_protos.model_config_pb2 import ModelInput

# Checking a BYTES buffer of this size takes a few hundred us at most. The thread of the
# instance checks larger ones.
MAX_INLINE_STRING_BYTES = 64 * 1024

_BATCH_NOTE = (
    "NOTE: Setting a non-zero max_batch_size in the model config requires a batch dimension to be prepended to each "
    "input shape. If you want to specify the full shape including the batch dim in your input dims config, try setting "
    "max_batch_size to zero. See the model configuration docs for more info on max_batch_size."
)


class InputRule:
    """One configured input.

    `batched` says that a batch dimension precedes `dims`. Shape tensors never have one.
    """

    def __init__(self, config: ModelInput, batched: bool, model_name: str) -> None:
        kind = DATATYPE_OF_NUMBER[config.data_type]
        self.name = config.name
        self.model_name = model_name
        self.datatype = kind.name
        self.dims = tuple(config.dims)
        self.optional = config.optional
        self.batched = batched and not config.is_shape_tensor
        # Triton's error text shows a batch dimension for shape tensors, too.
        self._expected, self._note = ((WILDCARD, *self.dims), _BATCH_NOTE) if batched else (self.dims, "")
        self.skip = 1 if self.batched else 0
        # Only the backend knows the size of other formats.
        self.sized = not config.is_non_linear_format_io
        self.itemsize = kind.itemsize
        # Size of one row if every dimension is fixed. -1 never matches and leads to the slower `fits`.
        self.row_bytes = -1 if WILDCARD in self.dims or not kind.itemsize else prod(self.dims) * kind.itemsize
        self._dtype = kind.dtype
        self._rank = len(self.dims) + self.skip
        self._fixed = [(index, dim) for index, dim in enumerate(self.dims, start=self.skip) if dim != WILDCARD]

    def fits(self, tensor: Tensor) -> bool:
        """Return whether `tensor` has the datatype, shape and size of this input.

        The elements of large BYTES tensors are not checked.
        """
        shape, data = tensor.shape, tensor.data
        if tensor.datatype != self.datatype or len(shape) != self._rank:
            return False
        for index, dim in self._fixed:
            if shape[index] != dim:
                return False
        # An array of the right dtype and shape has the right size. Skipping the computation saves 2 us.
        if type(data) is np.ndarray and data.dtype == self._dtype and data.shape == shape:
            return True
        return self._size_error(tensor) is None

    def needs_deferred_check(self, tensor: Tensor) -> bool:
        """Return whether `tensor` is a BYTES tensor too large to be checked on the event loop."""
        return self.datatype == "BYTES" and tensor.device == CPU and tensor.data.nbytes > MAX_INLINE_STRING_BYTES

    def find_error(self, tensor: Tensor) -> InputError | None:
        """Return what is wrong with `tensor` in Triton's words, or None."""
        name, model = self.name, self.model_name
        if tensor.datatype != self.datatype:
            return InputError(
                f"inference input '{name}' data-type is '{tensor.datatype}', but model '{model}' expects "
                f"'{self.datatype}'"
            )
        return self._shape_error(tensor) or self._size_error(tensor)

    def _shape_error(self, tensor: Tensor) -> InputError | None:
        sizes = tensor.shape[self.skip :]
        fits = len(sizes) == len(self.dims)
        for size, dim in zip(sizes, self.dims, strict=False) if fits else ():
            if size == WILDCARD:
                return InputError(
                    f"All input dimensions should be specified for input '{self.name}' for model '{self.model_name}', "
                    f"got {dims_text(tensor.shape)}"
                )
            if dim not in (size, WILDCARD):
                fits = False
                break
        if fits:
            return None
        return InputError(
            f"unexpected shape for input '{self.name}' for model '{self.model_name}'. Expected {dims_text(self._expected)}, got "
            f"{dims_text(tensor.shape)}. {self._note}"
        )

    def _size_error(self, tensor: Tensor) -> InputError | None:
        shape, name = tensor.shape, self.name
        if not self.sized:
            return None
        if min(shape) < 0:
            where = dims_text(shape) if self.itemsize else f"in shape {dims_text(shape)}"
            return InputError(f"tensor '{name}' contains an invalid dimension {where}", with_id=False)
        expected = prod(shape) * (self.itemsize or 1)
        if expected > MAX_SIZE:
            quantity = "byte size" if self.itemsize else "element count"
            return InputError(f"{quantity} for tensor '{name}' exceeds maximum size of {MAX_SIZE}", with_id=False)
        if not self.itemsize:
            is_valid = self.needs_deferred_check(tensor) or has_matching_strings(tensor)
            return None if is_valid else find_string_error(tensor, self.model_name)
        return None if tensor.nbytes == expected else self.size_mismatch(expected, tensor.nbytes)

    def size_mismatch(self, expected: int, found: int) -> InputError:
        """Return the error for `found` bytes where `expected` bytes are needed."""
        return InputError(
            f"input byte size mismatch for input '{self.name}' for model '{self.model_name}'. Expected {expected}, got "
            f"{found}"
        )
