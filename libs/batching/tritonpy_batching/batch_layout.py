"""The layout of one model's tensors in a batch, if they are not simply stacked rows."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate
from math import prod
from typing import TYPE_CHECKING, Any, Self

import numpy as np
import numpy.typing as npt

from tritonpy_protos.model_config_pb2 import BatchInput
from tritonpy_types import DATATYPE_OF_NUMBER, DTYPES, InferRequest, Tensor
from tritonpy_types.errors import Internal

if TYPE_CHECKING:
    from tritonpy_protos.model_config_pb2 import ModelConfig


Array = npt.NDArray[Any]
Shape = tuple[int, ...]
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
    rules: Sequence[BatchInputRule],
    inputs: Sequence[Mapping[str, Tensor] | None],
    like: Mapping[str, Tensor],
) -> list[Tensor]:
    """Return the tensors of `rules` for a batch whose requests have `inputs`.

    None is a slot without data, which counts as one row with the shapes of `like`. Raises Internal
    if the requests lack the input that a rule describes.
    """
    made: list[Tensor] = []
    for rule in rules:
        source = rule.source
        if source not in like:
            raise Internal(
                f"a batch input describes input '{source}', which the requests of the batch do "
                "not have"
            )
        hole = (1, *like[source].shape[1:])
        made += rule.tensors(
            [hole if tensors is None else tensors[source].shape for tensors in inputs]
        )
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


Slots = Sequence[InferRequest | None]


Allocate = Callable[[str, str, tuple[int, ...]], Array]


WILDCARD = -1


class BatchOutputRule:
    """The output `name`: each request gets its part of the elements, in the shape `dims`.

    A variable dimension has the size of the same dimension of the input `source`.
    """

    def __init__(self, name: str, source: str, dims: Shape) -> None:
        self.source = source
        self._name = name
        self._dims = dims

    def cut(self, tensor: Tensor, shapes: Sequence[Shape]) -> list[Tensor]:
        """Return the parts of `tensor`, as views, for requests whose source inputs have `shapes`.

        Raises Internal if it has too few elements, or if a source has too few dimensions.
        """
        part_shapes = [self._shape(shape) for shape in shapes]
        ends = list(accumulate(map(prod, part_shapes), initial=0))
        found = prod(tensor.shape)
        if found < ends[-1]:
            raise Internal(
                f"output '{self._name}' has {found} elements, the requests of its batch expect "
                f"{ends[-1]}"
            )
        return [
            _part(tensor, start, stop, shape)
            for start, stop, shape in zip(ends, ends[1:], part_shapes, strict=False)
        ]

    def _shape(self, source: Shape) -> Shape:
        if len(source) < len(self._dims) and WILDCARD in self._dims[len(source) :]:
            raise Internal(
                f"output '{self._name}' takes the size of dimension {len(source)} from input "
                f"'{self.source}', which has no such dimension"
            )
        return tuple(
            [source[index] if dim == WILDCARD else dim for index, dim in enumerate(self._dims)]
        )


def batch_output_rules(config: ModelConfig) -> dict[str, BatchOutputRule]:
    """Return the rules of a valid configuration by the name of their output."""
    batch = (WILDCARD,) if config.max_batch_size > 0 else ()
    outputs = {
        field.name: tuple(field.reshape.shape if field.HasField("reshape") else field.dims)
        for field in config.output
    }
    return {
        name: BatchOutputRule(name, each.source_input[0], (*batch, *outputs[name]))
        for each in config.batch_output
        for name in each.target_name
    }


def split_by_shape(
    rules: Mapping[str, BatchOutputRule],
    outputs: Mapping[str, Tensor],
    inputs: Sequence[Mapping[str, Tensor] | None],
) -> dict[str, list[Tensor]]:
    """Return one tensor per request for each of `outputs` that has a rule.

    `inputs` are those of the slots, None for a slot without data. Raises Internal as
    `BatchOutputRule.cut` does, and if the requests lack the source.
    """
    like = next(tensors for tensors in inputs if tensors is not None)
    parts: dict[str, list[Tensor]] = {}
    for name in rules.keys() & outputs.keys():
        rule = rules[name]
        source = like.get(rule.source)
        if source is None:
            raise Internal(
                f"output '{name}' has the shape of input '{rule.source}', "
                "which the requests do not have"
            )
        hole = (1, *source.shape[1:])
        shapes = [hole if tensors is None else tensors[rule.source].shape for tensors in inputs]
        cut = rule.cut(outputs[name], shapes)
        parts[name] = [
            part for part, tensors in zip(cut, inputs, strict=True) if tensors is not None
        ]
    return parts


def _part(tensor: Tensor, start: int, stop: int, shape: Shape) -> Tensor:
    if tensor.datatype == "BYTES":
        offsets = tensor.offsets()
        return Tensor(tensor.name, "BYTES", shape, tensor.data[offsets[start] : offsets[stop]])
    return Tensor(
        tensor.name, tensor.datatype, shape, tensor.numpy().reshape(-1)[start:stop].reshape(shape)
    )


def flatten_ragged(
    tensors: Sequence[Tensor | None], like: Tensor, out: Allocate | None = None
) -> Tensor:
    """Return the elements of all `tensors` as one tensor of shape [elements].

    It has the name and type of `like`. None is a slot without data: one row of zeros (empty strings
    for BYTES) with the shape of `like`. A single tensor is not copied. `out` is that of `gather`.
    """
    parts = [_hole(like) if tensor is None else _elements(tensor) for tensor in tensors]
    if like.datatype == "BYTES":
        count = sum(
            [prod(like.shape[1:]) if tensor is None else prod(tensor.shape) for tensor in tensors]
        )
        return Tensor(like.name, "BYTES", (count,), _joined(parts))
    return Tensor.from_numpy(
        like.name, _joined(parts, None if out is None else _memory(like, parts, out))
    )


def _joined(parts: Sequence[Array], memory: Array | None = None) -> Array:
    return parts[0] if len(parts) == 1 and memory is None else np.concatenate(parts, out=memory)


def _memory(like: Tensor, parts: Sequence[Array], out: Allocate) -> Array:
    return out(like.name, like.datatype, (sum([part.size for part in parts]),))


def _elements(tensor: Tensor) -> Array:
    data: Array = tensor.data if tensor.datatype == "BYTES" else tensor.numpy().reshape(-1)
    return data


def _hole(like: Tensor) -> Array:
    count = prod(like.shape[1:])
    return (
        np.zeros(4 * count, np.uint8)
        if like.datatype == "BYTES"
        else np.zeros(count, DTYPES[like.datatype])
    )


@dataclass(frozen=True, slots=True)
class BatchLayout:
    """The tensors of a model that need more than stacking, for `gather` and `scatter`.

    `ragged` inputs are concatenated without their shapes. Shape tensors (`shape_inputs`,
    `shape_outputs`) have no batch dimension: all requests of a batch share one. If the model
    batches (`batched`), each request gets the values of `shape_outputs` once per row.
    """

    ragged: frozenset[str]
    shape_inputs: frozenset[str]
    shape_outputs: frozenset[str]
    batch_inputs: tuple[BatchInputRule, ...]
    batch_outputs: Mapping[str, BatchOutputRule]
    batched: bool

    @classmethod
    def of(cls, config: ModelConfig) -> Self | None:
        """Return the layout of a complete configuration; None if every tensor is plain."""
        layout = cls(
            frozenset([field.name for field in config.input if field.allow_ragged_batch]),
            frozenset([field.name for field in config.input if field.is_shape_tensor]),
            frozenset([field.name for field in config.output if field.is_shape_tensor]),
            batch_input_rules(config),
            batch_output_rules(config),
            config.max_batch_size > 0,
        )
        special = (
            layout.ragged,
            layout.shape_inputs,
            layout.shape_outputs,
            layout.batch_inputs,
            layout.batch_outputs,
        )
        return layout if any(special) else None

    def gather_input(self, slots: Slots, like: Tensor, out: Allocate | None) -> Tensor | None:
        """Return one input of a batch, or None if it is stacked.

        `like` is that of the first request.
        """
        if like.name in self.ragged:
            return flatten_ragged(
                [None if slot is None else slot.inputs[like.name] for slot in slots], like, out
            )
        return like if like.name in self.shape_inputs else None

    def batch_input_tensors(self, slots: Slots) -> list[Tensor]:
        """Return the batch inputs.

        Raises Internal if the requests lack an input that one describes.
        """
        if not self.batch_inputs:
            return []
        inputs = _inputs(slots)
        return batch_inputs(
            self.batch_inputs, inputs, next(tensors for tensors in inputs if tensors is not None)
        )

    def split_outputs(self, slots: Slots, outputs: Mapping[str, Tensor]) -> dict[str, list[Tensor]]:
        """Return one tensor per request for outputs that are not cut along the first dimension.

        Raises Internal if an output does not have the size that the requests of the batch expect.
        """
        parts = (
            split_by_shape(self.batch_outputs, outputs, _inputs(slots))
            if self.batch_outputs
            else {}
        )
        for name in self.shape_outputs.intersection(outputs):
            parts[name] = [
                self._repeated(outputs[name], slot.batch_size) for slot in slots if slot is not None
            ]
        return parts

    def _repeated(self, values: Tensor, rows: int) -> Tensor:
        if not self.batched:
            return values
        data = np.tile(values.numpy(), (rows, *[1] * len(values.shape)))
        return Tensor(values.name, values.datatype, data.shape, data)


def _inputs(slots: Slots) -> list[Mapping[str, Tensor] | None]:
    return [None if slot is None else slot.inputs for slot in slots]
