"""Pure completion of a model configuration from the model's signature."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tritonpy import DATATYPES, Internal, InvalidArgument
from tritonpy.config import set_dims
from tritonpy_backend_kit.config_completion import (
    copied,
    enable_dynamic_batching,
    server_inputs,
    server_outputs,
    without,
)
from tritonpy_backend_tf.signature import Signature, TensorInfo

if TYPE_CHECKING:
    from tritonpy_protos.model_config_pb2 import ModelConfig, ModelInput, ModelOutput

    Field = ModelInput | ModelOutput


def needs_completion(config: ModelConfig) -> bool:
    """Return whether an input or output lacks a property that the model may provide."""
    fields: list[Field] = [*config.input, *config.output]
    return not (
        config.input and config.output and all(field.dims and field.data_type for field in fields)
    )


def complete_config(
    config: ModelConfig, signature: Signature, default_max_batch_size: int
) -> ModelConfig:
    """Return a copy of `config` with tensors, batch size and batching filled in as in Triton.

    Configured tensors get their missing properties. Missing inputs are added; outputs, and inputs
    of a graph without a signature, are added only if `config` has none. A model that supports
    batching gets `default_max_batch_size` if its batch size is not set, unless the configured
    dimensions rule batching out.

    Raises `Internal` if configuration and model contradict each other about batching,
    `InvalidArgument` if the model does not define a tensor's dimensions.
    """
    result = copied(config)
    can_batch = signature.can_batch
    if not can_batch and config.max_batch_size > 0:
        raise Internal(
            f"unable to autofill for '{config.name}', configuration specified max-batch "
            f"{config.max_batch_size}"
            " but model signature does not support batching"
        )
    if can_batch and result.max_batch_size == 0 and _expects_batching(config, signature):
        result.max_batch_size = max(default_max_batch_size, 0)
    enable_dynamic_batching(result)
    _complete_inputs(result, signature)
    _complete_outputs(result, signature)
    return result


def _expects_batching(config: ModelConfig, signature: Signature) -> bool:
    """Return whether the configured dimensions omit the batch dimension; True if there are none."""
    fields: list[Field] = [*config.input, *config.output]
    if any(field.allow_ragged_batch for field in config.input):
        return True
    hints = {hint for field in fields if (hint := _batching_hint(field, signature)) is not None}
    if len(hints) > 1:
        raise Internal(
            f"unable to autofill for '{config.name}', model tensor configurations are "
            "contradicting each other in terms of"
            " whether batching is supported"
        )
    return hints != {False}


def _batching_hint(field: Field, signature: Signature) -> bool | None:
    info = signature.known_inputs.get(field.name) or signature.known_outputs.get(field.name)
    dims = field.reshape.shape if field.HasField("reshape") else field.dims
    if info is None or not info.dims or not field.dims:
        return None
    return len(dims) == len(info.dims) - 1


def _complete_inputs(config: ModelConfig, signature: Signature) -> None:
    for field in config.input:
        info = signature.known_inputs.get(field.name)
        if info is not None:
            _complete_field(config, field, info)
    if config.input and not signature.exact:
        return
    made = {*server_inputs(config), *[field.name for field in config.input]}
    for name, info in without(signature.inputs, made).items():
        _complete_field(config, config.input.add(name=name), info)


def _complete_outputs(config: ModelConfig, signature: Signature) -> None:
    if config.output:
        for field in config.output:
            info = signature.known_outputs.get(field.name)
            if info is not None:
                _complete_field(config, field, info)
        return
    for name, info in without(signature.outputs, server_outputs(config)).items():
        _complete_field(config, config.output.add(name=name), info)


def _complete_field(config: ModelConfig, field: Field, info: TensorInfo) -> None:
    if field.data_type == 0:
        field.data_type = DATATYPES[info.datatype].number  # type: ignore[assignment]  # the stubs want its enum
    if field.dims:
        return
    if info.dims is None:
        raise InvalidArgument(
            f"Unable to autofill for '{config.name}': the rank of model tensor '{field.name}' is "
            "0 and dimensions are not defined"
        )
    set_dims(field, info.dims, config.max_batch_size > 0)
