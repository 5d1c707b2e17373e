"""Completes a model configuration from the model's signature. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from tritonpy import DATATYPES, InvalidArgument, set_dims
from tritonpy_backend_torch.signature import Place, Signature

if TYPE_CHECKING:
    from google.protobuf.internal.containers import RepeatedCompositeFieldContainer

    from tritonpy_protos.model_config_pb2 import ModelConfig, ModelInput, ModelOutput


def needs_completion(config: ModelConfig) -> bool:
    """Say whether the model must be asked: a configuration with inputs and outputs is taken as it is."""
    return not (config.output and (config.input or config.batch_input))


def completed(config: ModelConfig, signature: Signature, default_max_batch_size: int) -> ModelConfig:
    """Return a copy of `config` with inputs, outputs, batch size and batching as `signature`, which is complete, tells them.

    A model that can batch and says nothing of a batch size gets the default, or the largest that it was exported for; 0 counts as saying nothing.
    Raises InvalidArgument where a batch size is given and the model cannot batch.
    """
    result = type(config)()
    result.CopyFrom(config)
    if signature.most_rows == 0 and config.max_batch_size != 0:
        raise InvalidArgument(
            f"autofill failed for model '{config.name}': model does not support batching while non-zero max_batch_size"
            " is specified"
        )
    if result.max_batch_size == 0:
        result.max_batch_size = max(min(default_max_batch_size, signature.most_rows), 0)
    if result.max_batch_size > 1 and result.WhichOneof("scheduling_choice") is None:
        result.dynamic_batching.SetInParent()
    sequence = result.sequence_batching
    # What the server itself gives to a sequence and keeps of it is no business of clients.
    own = {name for state in sequence.state for name in (state.input_name, state.output_name)}
    own.update(each.name for each in sequence.control_input)
    batched = result.max_batch_size > 0
    if not (result.input or result.batch_input):
        _describe(result.input, [place for place in signature.given if own.isdisjoint(place.names)], batched)
    if not result.output:
        _describe(result.output, [place for place in signature.outputs if own.isdisjoint(place.names)], batched)
    return result


def _describe(
    fields: RepeatedCompositeFieldContainer[ModelInput] | RepeatedCompositeFieldContainer[ModelOutput],
    places: Sequence[Place],
    batched: bool,
) -> None:
    for place in places:
        assert place.info is not None, "only a complete signature completes: this is a bug"  # noqa: S101
        field = fields.add(name=place.names[0], data_type=DATATYPES[place.info.datatype].number)
        set_dims(field, place.info.dims, batched)
