"""Tensors that describe a whole batch, for `batch_input` of a configuration. Pure functions."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import accumulate
from math import prod
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from tritonpy.errors import Internal
from tritonpy.types import DATATYPE_OF_NUMBER, Tensor
from tritonpy_protos.model_config_pb2 import BatchInput

if TYPE_CHECKING:
    from tritonpy_protos.model_config_pb2 import ModelConfig

Shape = tuple[int, ...]
Array = npt.NDArray[Any]
_Make = Callable[[Sequence[Shape], np.dtype[Any]], Array]


class BatchInputRule:
    """One `batch_input`: its tensors describe the shapes of the input `source` in a batch.

    A shape includes its batch dimension: a request of shape [2,3] has 6 elements and two items of
    shape [3].
    """

    def __init__(self, config: BatchInput) -> None:
        kind = DATATYPE_OF_NUMBER[config.data_type]
        self.source = config.source_input[0]
        self._names = tuple(config.target_name)
        self._datatype, self._dtype = kind.name, kind.dtype
        self._make = _MAKERS[config.kind]

    def tensors(self, shapes: Sequence[Shape]) -> list[Tensor]:
        """Return the tensors, one per target name.

        Raises OverflowError if a count exceeds the range of the data type.
        """
        array = self._make(shapes, self._dtype)
        return [Tensor(name, self._datatype, array.shape, array) for name in self._names]


def batch_input_rules(config: ModelConfig) -> tuple[BatchInputRule, ...]:
    """Return the rules of a valid configuration, in its order."""
    return tuple([BatchInputRule(each) for each in config.batch_input])


def batch_inputs(
    rules: Sequence[BatchInputRule], inputs: Sequence[Mapping[str, Tensor] | None], like: Mapping[str, Tensor]
) -> list[Tensor]:
    """Return the tensors of `rules` for a batch whose requests have `inputs`.

    None is a slot without data, which counts as one row with the shapes of `like`. Raises Internal
    if the requests lack the input that a rule describes.
    """
    made: list[Tensor] = []
    for rule in rules:
        source = rule.source
        if source not in like:
            raise Internal(f"a batch input describes input '{source}', which the requests of the batch do not have")
        hole = (1, *like[source].shape[1:])
        made += rule.tensors([hole if tensors is None else tensors[source].shape for tensors in inputs])
    return made


def _counts(shapes: Sequence[Shape], dtype: np.dtype[Any]) -> Array:
    return np.array([prod(shape) for shape in shapes], dtype)


def _sums(shapes: Sequence[Shape], dtype: np.dtype[Any]) -> Array:
    return np.array(list(accumulate(map(prod, shapes))), dtype)


def _sums_from_zero(shapes: Sequence[Shape], dtype: np.dtype[Any]) -> Array:
    return np.array(list(accumulate(map(prod, shapes), initial=0)), dtype)


def _largest_as_shape(shapes: Sequence[Shape], dtype: np.dtype[Any]) -> Array:
    return np.zeros(max(map(prod, shapes)), dtype)  # only its size matters


def _item_shapes(shapes: Sequence[Shape], dtype: np.dtype[Any]) -> Array:
    items = [shape[1:] for shape in shapes for _ in range(shape[0])]
    return np.array(items, dtype).reshape(len(items), len(shapes[0]) - 1)


def _item_shapes_flat(shapes: Sequence[Shape], dtype: np.dtype[Any]) -> Array:
    return _item_shapes(shapes, dtype).reshape(-1)


_MAKERS: Mapping[int, _Make] = {
    BatchInput.BATCH_ELEMENT_COUNT: _counts,
    BatchInput.BATCH_ACCUMULATED_ELEMENT_COUNT: _sums,
    BatchInput.BATCH_ACCUMULATED_ELEMENT_COUNT_WITH_ZERO: _sums_from_zero,
    BatchInput.BATCH_MAX_ELEMENT_COUNT_AS_SHAPE: _largest_as_shape,
    BatchInput.BATCH_ITEM_SHAPE: _item_shapes,
    BatchInput.BATCH_ITEM_SHAPE_FLATTEN: _item_shapes_flat,
}
