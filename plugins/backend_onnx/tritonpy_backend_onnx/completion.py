"""Completes a model configuration from the model's signature. Pure."""

from __future__ import annotations

from collections.abc import Container, Mapping
from typing import TYPE_CHECKING

from tritonpy import DATATYPES, InvalidArgument, set_dims
from tritonpy_backend_onnx.signature import Signature, TensorInfo

if TYPE_CHECKING:
    from google.protobuf.internal.containers import RepeatedCompositeFieldContainer

    from tritonpy_protos.model_config_pb2 import ModelConfig, ModelInput, ModelOutput


def needs_completion(config: ModelConfig) -> bool:
    """Say whether the model must be opened: a configuration with inputs and outputs is taken as it is."""
    return not (config.output and (config.input or config.batch_input))


def completed(config: ModelConfig, signature: Signature, default_max_batch_size: int) -> ModelConfig:
    """Return a copy of `config` with inputs, outputs, batch size and batching filled in as Triton does.

    A model that can batch and says nothing of a batch size gets the default; 0 counts as saying nothing. Raises InvalidArgument
    where a batch size is given and the model cannot batch.
    """
    result = type(config)()
    result.CopyFrom(config)
    if signature.can_batch:
        if result.max_batch_size == 0:
            result.max_batch_size = max(default_max_batch_size, 0)
        if result.max_batch_size > 1 and result.WhichOneof("scheduling_choice") is None:
            result.dynamic_batching.SetInParent()
    elif result.max_batch_size != 0:
        raise InvalidArgument(
            f"autofill failed for model '{config.name}': model does not support batching while non-zero max_batch_size"
            " is specified"
        )
    # What the server itself gives to a sequence and keeps of it is no business of clients.
    sequence = result.sequence_batching
    own_inputs = {*[each.name for each in sequence.control_input], *[state.input_name for state in sequence.state]}
    if not (result.input or result.batch_input):
        _describe(result.input, _without(signature.inputs, own_inputs), result.max_batch_size > 0)
    if not result.output:
        own_outputs = {state.output_name for state in sequence.state}
        _describe(result.output, _without(signature.outputs, own_outputs), result.max_batch_size > 0)
    return result


def _without(infos: Mapping[str, TensorInfo], names: Container[str]) -> Mapping[str, TensorInfo]:
    return {name: info for name, info in infos.items() if name not in names}


def _describe(
    fields: RepeatedCompositeFieldContainer[ModelInput] | RepeatedCompositeFieldContainer[ModelOutput],
    infos: Mapping[str, TensorInfo],
    batched: bool,
) -> None:
    for name, info in infos.items():
        field = fields.add(name=name, data_type=DATATYPES[info.datatype].number)
        set_dims(field, info.dims, batched)
