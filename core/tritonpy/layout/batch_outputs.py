"""Outputs that are cut by the shapes of an input: what `batch_output` of a configuration asks for. Pure."""

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
    """The output `name`: each request gets its part of the elements, in the shape that `dims` say; those of any size have the size of the
    same dimension of the input `source`."""

    def __init__(self, name: str, source: str, dims: Shape) -> None:
        self.source = source
        self._name = name
        self._dims = dims

    def cut(self, tensor: Tensor, shapes: Sequence[Shape]) -> list[Tensor]:
        """Return the parts of `tensor`, as views, for requests whose source inputs have `shapes`.

        Raises Internal where it has fewer elements than they need, or where a source has too few dimensions.
        """
        wanted = [self._shape(shape) for shape in shapes]
        ends = list(accumulate(map(prod, wanted), initial=0))
        found = prod(tensor.shape)
        if found < ends[-1]:
            raise Internal(f"output '{self._name}' has {found} elements, the requests of its batch expect {ends[-1]}")
        return [_part(tensor, start, stop, shape) for start, stop, shape in zip(ends, ends[1:], wanted, strict=False)]

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


def scattered(
    rules: Mapping[str, BatchOutputRule], outputs: Mapping[str, Tensor], inputs: Sequence[Mapping[str, Tensor] | None]
) -> dict[str, list[Tensor]]:
    """Return the parts of those of `outputs` that have a rule, one for each request; `inputs` are those of the slots, None where one has no data.

    Raises Internal, see `BatchOutputRule.cut`, also where the requests lack the source.
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
