"""The shapes that clients see and the ones that the model sees, where the configuration says `reshape`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import prod
from typing import TYPE_CHECKING

import numpy as np

from tritonpy.config.dims import WILDCARD, dims_text
from tritonpy.errors import Internal
from tritonpy.types import Tensor

if TYPE_CHECKING:
    from tritonpy_protos.model_config_pb2 import ModelConfig, ModelInput, ModelOutput

Dims = tuple[int, ...]


class Reshape:
    """Maps tensors of one direction; a tensor without `reshape` passes as it is, and no data is copied.

    False where nothing is to be mapped. `table` maps a name to the dimensions before and after, both
    without the batch dimension, and says how many dimensions stand before them; build it with `of_inputs` or `of_outputs`.
    """

    def __init__(self, table: Mapping[str, tuple[Dims, Dims, int]]) -> None:
        self._table = table

    @classmethod
    def of_inputs(cls, config: ModelConfig) -> Reshape:
        """From what clients send to what the model takes."""
        return cls(
            {
                tensor.name: (tuple(tensor.dims), tuple(tensor.reshape.shape), _rows(config, tensor))
                for tensor in config.input
                if tensor.HasField("reshape")
            }
        )

    @classmethod
    def of_outputs(cls, config: ModelConfig) -> Reshape:
        """From what the model gives to what clients get."""
        return cls(
            {
                tensor.name: (tuple(tensor.reshape.shape), tuple(tensor.dims), _rows(config, tensor))
                for tensor in config.output
                if tensor.HasField("reshape")
            }
        )

    def __bool__(self) -> bool:
        """Say whether any tensor has another shape on the other side."""
        return bool(self._table)

    def apply(self, tensors: Sequence[Tensor]) -> list[Tensor]:
        """Return `tensors` with the shapes of the other side, in the same order.

        Raises Internal for a tensor that has not the shape that the configuration promises.
        """
        return [self._mapped(tensor) if tensor.name in self._table else tensor for tensor in tensors]

    def _mapped(self, tensor: Tensor) -> Tensor:
        before, after, skip = self._table[tensor.name]
        shape, data = tensor.shape, tensor.data
        try:
            mapped = shape[:skip] + reshaped(shape[skip:], before, after)
            if prod(mapped) != prod(shape):
                raise ValueError  # noqa: TRY301
            # BYTES is flat already; on another device the tensor's shape is what counts
            if tensor.datatype != "BYTES" and isinstance(data, np.ndarray):
                data = data.reshape(mapped)
        except ValueError as error:
            expected = dims_text((WILDCARD,) * skip + before)
            raise Internal(
                f"tensor '{tensor.name}' has shape {dims_text(shape)}, the configuration's reshape expects {expected}"
            ) from error
        return Tensor(tensor.name, tensor.datatype, mapped, data, tensor.device, tensor._offsets)


def _rows(config: ModelConfig, tensor: ModelInput | ModelOutput) -> int:
    """Return 1 where a batch dimension stands before those of `tensor`: a shape tensor has none."""
    return 1 if config.max_batch_size > 0 and not tensor.is_shape_tensor else 0


def reshaped(shape: Dims, before: Dims, after: Dims) -> Dims:
    """Return `after` with its dimensions of any size filled, in order, from those of `before` in `shape`.

    Where it has none, `shape` is not looked at. Raises ValueError where `shape` and `before` differ in length.
    """
    if WILDCARD not in after:
        return after
    sizes = iter([size for size, dim in zip(shape, before, strict=True) if dim == WILDCARD])
    return tuple([next(sizes) if dim == WILDCARD else dim for dim in after])
