"""How the tensors of one model lie in a batch, where they are not simply rows below rows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Self

import numpy as np

from tritonpy.layout.batch_inputs import BatchInputRule, batch_input_rules, batch_inputs
from tritonpy.layout.batch_outputs import BatchOutputRule, batch_output_rules, scattered
from tritonpy.layout.ragged import Allocate, flattened
from tritonpy.types import InferRequest, Tensor

if TYPE_CHECKING:
    from tritonpy_protos.model_config_pb2 import ModelConfig

Slots = Sequence[InferRequest | None]


@dataclass(frozen=True, slots=True)
class BatchLayout:
    """The tensors of a model that need more than to be stacked; `gather` and `scatter` ask it.

    `ragged` inputs are concatenated without their shapes. Shape tensors have no batch dimension and are the same in all requests of a batch: it
    has one, and so do `shape_outputs`: where the model batches (`batched`), each request gets the values once for each of its rows.
    """

    ragged: frozenset[str]
    shape_inputs: frozenset[str]
    shape_outputs: frozenset[str]
    batch_inputs: tuple[BatchInputRule, ...]
    batch_outputs: Mapping[str, BatchOutputRule]
    batched: bool

    @classmethod
    def of(cls, config: ModelConfig) -> Self | None:
        """Return the layout of a complete configuration; None where every tensor is plain."""
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

    def placed(self, slots: Slots, like: Tensor, out: Allocate | None) -> Tensor | None:
        """Return one input of a batch, `like` being that of its first request; None where it is to be stacked."""
        if like.name in self.ragged:
            return flattened([None if slot is None else slot.inputs[like.name] for slot in slots], like, out)
        return like if like.name in self.shape_inputs else None

    def made(self, slots: Slots) -> list[Tensor]:
        """Return the batch inputs. Raises Internal where the requests lack an input that one of them is about."""
        if not self.batch_inputs:
            return []
        inputs = _inputs(slots)
        return batch_inputs(self.batch_inputs, inputs, next(tensors for tensors in inputs if tensors is not None))

    def taken_apart(self, slots: Slots, outputs: Mapping[str, Tensor]) -> dict[str, list[Tensor]]:
        """Return those of `outputs` that are not cut along the first dimension, as one tensor for each request.

        Raises Internal where an output does not have what the requests of the batch expect.
        """
        apart = scattered(self.batch_outputs, outputs, _inputs(slots)) if self.batch_outputs else {}
        for name in self.shape_outputs & outputs.keys():
            apart[name] = [self._repeated(outputs[name], slot.batch_size) for slot in slots if slot is not None]
        return apart

    def _repeated(self, values: Tensor, rows: int) -> Tensor:
        if not self.batched:
            return values
        data = np.tile(values.numpy(), (rows, *[1] * len(values.shape)))
        return Tensor(values.name, values.datatype, data.shape, data)


def _inputs(slots: Slots) -> list[Mapping[str, Tensor] | None]:
    return [None if slot is None else slot.inputs for slot in slots]
