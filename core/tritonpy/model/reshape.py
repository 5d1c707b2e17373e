"""The `reshape` of a configuration: mapping between the shapes of clients and of the model."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import prod
from typing import TYPE_CHECKING

import numpy as np

from tritonpy_config.model_fit import WILDCARD, dims_text
from tritonpy_types import Tensor
from tritonpy_types.errors import Internal

if TYPE_CHECKING:
    from tritonpy_protos.model_config_pb2 import ModelConfig, ModelInput, ModelOutput

Dims = tuple[int, ...]


class Reshape:
    """Maps the tensors of one direction without copying data; false if no tensor is reshaped.

    `table` maps a tensor name to its dimensions before and after, both without the batch dimension,
    and to the number of batch dimensions (0 or 1). Build it with `of_inputs` or `of_outputs`.
    """

    def __init__(self, table: Mapping[str, tuple[Dims, Dims, int]]) -> None:
        self._table = table

    @classmethod
    def of_inputs(cls, config: ModelConfig) -> Reshape:
        """Return the mapping from the shapes that clients send to those of the model."""
        return cls(
            {
                tensor.name: (
                    tuple(tensor.dims),
                    tuple(tensor.reshape.shape),
                    _batch_dimensions(config, tensor),
                )
                for tensor in config.input
                if tensor.HasField("reshape")
            }
        )

    @classmethod
    def of_outputs(cls, config: ModelConfig) -> Reshape:
        """Return the mapping from the shapes of the model to those that clients get."""
        return cls(
            {
                tensor.name: (
                    tuple(tensor.reshape.shape),
                    tuple(tensor.dims),
                    _batch_dimensions(config, tensor),
                )
                for tensor in config.output
                if tensor.HasField("reshape")
            }
        )

    def __bool__(self) -> bool:
        """Return whether any tensor is reshaped."""
        return bool(self._table)

    def apply(self, tensors: Sequence[Tensor]) -> list[Tensor]:
        """Return `tensors` with their mapped shapes, in the same order.

        Raises `Internal` for a tensor whose shape does not match the configuration.
        """
        return [
            self._mapped(tensor) if tensor.name in self._table else tensor for tensor in tensors
        ]

    def _mapped(self, tensor: Tensor) -> Tensor:
        before, after, skip = self._table[tensor.name]
        shape, data = tensor.shape, tensor.data
        try:
            mapped = shape[:skip] + reshaped(shape[skip:], before, after)
            if prod(mapped) != prod(shape):
                raise ValueError  # noqa: TRY301
            # BYTES data is flat; on another device only the tensor's shape changes
            if tensor.datatype != "BYTES" and isinstance(data, np.ndarray):
                data = data.reshape(mapped)
        except ValueError as error:
            expected = dims_text((WILDCARD,) * skip + before)
            raise Internal(
                f"tensor '{tensor.name}' has shape {dims_text(shape)}, the configuration's "
                f"reshape expects {expected}"
            ) from error
        return Tensor(tensor.name, tensor.datatype, mapped, data, tensor.device, tensor._offsets)


def _batch_dimensions(config: ModelConfig, tensor: ModelInput | ModelOutput) -> int:
    """Return the number of batch dimensions of `tensor`. A shape tensor has none."""
    return 1 if config.max_batch_size > 0 and not tensor.is_shape_tensor else 0


def reshaped(shape: Dims, before: Dims, after: Dims) -> Dims:
    """Return `after` with its variable dimensions filled, in order, from `shape`.

    `before` marks the variable dimensions of `shape`. If `after` has no variable dimension, `shape`
    is ignored. Raises `ValueError` if `shape` and `before` differ in length.
    """
    if WILDCARD not in after:
        return after
    sizes = iter([size for size, dim in zip(shape, before, strict=True) if dim == WILDCARD])
    return tuple([next(sizes) if dim == WILDCARD else dim for dim in after])
