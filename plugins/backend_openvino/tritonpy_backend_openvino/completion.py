"""Completes a model configuration from the model's signature. Pure."""

from __future__ import annotations

from collections.abc import Container, Mapping
from typing import TYPE_CHECKING

from tritonpy import DATATYPES, InvalidArgument, set_dims
from tritonpy_backend_openvino.signature import Signature, TensorInfo

if TYPE_CHECKING:
    from google.protobuf.internal.containers import RepeatedCompositeFieldContainer

    from tritonpy_protos.model_config_pb2 import ModelConfig, ModelInput, ModelOutput

# What image clients read to lay out their pixels.
_FORMATS = {"[N,C,H,W]": "FORMAT_NCHW", "[N,H,W,C]": "FORMAT_NHWC"}


def needs_completion(config: ModelConfig) -> bool:
    """Say whether the model must be opened: a configuration with inputs and outputs is taken as it is."""
    return not (config.output and (config.input or config.batch_input))


def completed(config: ModelConfig, signature: Signature, default_max_batch_size: int) -> ModelConfig:
    """Return a copy of `config` with inputs, outputs, batch size and batching filled in.

    A model that can batch and says nothing of a batch size gets the default, 1 at least; 0 counts as saying nothing. Raises InvalidArgument for
    a tensor that cannot be described because the model leaves the number of its dimensions open.
    """
    result = type(config)()
    result.CopyFrom(config)
    if signature.can_batch:
        result.max_batch_size = result.max_batch_size or max(default_max_batch_size, 1)
        if result.max_batch_size > 1 and result.WhichOneof("scheduling_choice") is None:
            result.dynamic_batching.SetInParent()
    batched = result.max_batch_size > 0
    # What the server itself gives to a sequence and keeps of it is no business of clients.
    sequence = result.sequence_batching
    own_inputs = {*[each.name for each in sequence.control_input], *[state.input_name for state in sequence.state]}
    if not (result.input or result.batch_input):
        inputs = _without(signature.inputs, own_inputs)
        _describe(result.input, inputs, batched)
        if batched:
            for field in result.input:
                _set_format(field, inputs[field.name])
    if not result.output:
        _describe(result.output, _without(signature.outputs, {state.output_name for state in sequence.state}), batched)
    return result


def _without(infos: Mapping[str, TensorInfo], names: Container[str]) -> Mapping[str, TensorInfo]:
    return {name: info for name, info in infos.items() if name not in names}


def _describe(
    fields: RepeatedCompositeFieldContainer[ModelInput] | RepeatedCompositeFieldContainer[ModelOutput],
    infos: Mapping[str, TensorInfo],
    batched: bool,
) -> None:
    for name, info in infos.items():
        if info.dims is None:
            raise InvalidArgument(
                f"the model leaves the number of dimensions of '{name}' open: the configuration must give its dims"
            )
        field = fields.add(name=name, data_type=DATATYPES[info.datatype].number)
        set_dims(field, info.dims, batched)


def _set_format(field: ModelInput, info: TensorInfo) -> None:
    if len(field.dims) == 3 and info.layout in _FORMATS:
        field.format = getattr(field, _FORMATS[info.layout])
