"""Outputs that are cut by the shapes of an input, for `batch_output`. Pure functions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import accumulate
from math import prod
from typing import TYPE_CHECKING

from tritonpy.errors import Internal
from tritonpy.types import Tensor

if TYPE_CHECKING:
    from tritonpy_protos.model_config_pb2 import ModelConfig

Shape = tuple[int, ...]
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
            raise Internal(f"output '{self._name}' has {found} elements, the requests of its batch expect {ends[-1]}")
        return [
            _part(tensor, start, stop, shape) for start, stop, shape in zip(ends, ends[1:], part_shapes, strict=False)
        ]

    def _shape(self, source: Shape) -> Shape:
        if len(source) < len(self._dims) and WILDCARD in self._dims[len(source) :]:
            raise Internal(
                f"output '{self._name}' takes the size of dimension {len(source)} from input '{self.source}', which has no such dimension"
            )
        return tuple([source[index] if dim == WILDCARD else dim for index, dim in enumerate(self._dims)])


def batch_output_rules(config: ModelConfig) -> dict[str, BatchOutputRule]:
    """Return the rules of a valid configuration by the name of their output."""
    batch = (WILDCARD,) if config.max_batch_size > 0 else ()
    outputs = {
        field.name: tuple(field.reshape.shape if field.HasField("reshape") else field.dims) for field in config.output
    }
    return {
        name: BatchOutputRule(name, each.source_input[0], (*batch, *outputs[name]))
        for each in config.batch_output
        for name in each.target_name
    }


def split_by_shape(
    rules: Mapping[str, BatchOutputRule], outputs: Mapping[str, Tensor], inputs: Sequence[Mapping[str, Tensor] | None]
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
            raise Internal(f"output '{name}' has the shape of input '{rule.source}', which the requests do not have")
        hole = (1, *source.shape[1:])
        shapes = [hole if tensors is None else tensors[rule.source].shape for tensors in inputs]
        cut = rule.cut(outputs[name], shapes)
        parts[name] = [part for part, tensors in zip(cut, inputs, strict=True) if tensors is not None]
    return parts


def _part(tensor: Tensor, start: int, stop: int, shape: Shape) -> Tensor:
    if tensor.datatype == "BYTES":
        offsets = tensor.offsets()
        return Tensor(tensor.name, "BYTES", shape, tensor.data[offsets[start] : offsets[stop]])
    return Tensor(tensor.name, tensor.datatype, shape, tensor.numpy().reshape(-1)[start:stop].reshape(shape))
