"""The layout of one model's tensors in a batch, if they are not simply stacked rows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Self

import numpy as np

from tritonpy.batching.batch_inputs import BatchInputRule, batch_input_rules, batch_inputs
from tritonpy.batching.batch_outputs import BatchOutputRule, batch_output_rules, split_by_shape
from tritonpy.batching.ragged import Allocate, flatten_ragged
from tritonpy.types import InferRequest, Tensor

if TYPE_CHECKING:
    from tritonpy_protos.model_config_pb2 import ModelConfig

Slots = Sequence[InferRequest | None]


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
        special = (layout.ragged, layout.shape_inputs, layout.shape_outputs, layout.batch_inputs, layout.batch_outputs)
        return layout if any(special) else None

    def gather_input(self, slots: Slots, like: Tensor, out: Allocate | None) -> Tensor | None:
        """Return one input of a batch, or None if it is stacked.

        `like` is that of the first request.
        """
        if like.name in self.ragged:
            return flatten_ragged([None if slot is None else slot.inputs[like.name] for slot in slots], like, out)
        return like if like.name in self.shape_inputs else None

    def batch_input_tensors(self, slots: Slots) -> list[Tensor]:
        """Return the batch inputs.

        Raises Internal if the requests lack an input that one describes.
        """
        if not self.batch_inputs:
            return []
        inputs = _inputs(slots)
        return batch_inputs(self.batch_inputs, inputs, next(tensors for tensors in inputs if tensors is not None))

    def split_outputs(self, slots: Slots, outputs: Mapping[str, Tensor]) -> dict[str, list[Tensor]]:
        """Return one tensor per request for outputs that are not cut along the first dimension.

        Raises Internal if an output does not have the size that the requests of the batch expect.
        """
        parts = split_by_shape(self.batch_outputs, outputs, _inputs(slots)) if self.batch_outputs else {}
        for name in self.shape_outputs & outputs.keys():
            parts[name] = [self._repeated(outputs[name], slot.batch_size) for slot in slots if slot is not None]
        return parts

    def _repeated(self, values: Tensor, rows: int) -> Tensor:
        if not self.batched:
            return values
        data = np.tile(values.numpy(), (rows, *[1] * len(values.shape)))
        return Tensor(values.name, values.datatype, data.shape, data)


def _inputs(slots: Slots) -> list[Mapping[str, Tensor] | None]:
    return [None if slot is None else slot.inputs for slot in slots]
