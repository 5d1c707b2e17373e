"""Pure completion of a model configuration from the model's signature."""

from __future__ import annotations

from collections.abc import Container, Mapping
from typing import TYPE_CHECKING

from tritonpy import DATATYPES, InvalidArgument
from tritonpy.config import set_dims
from tritonpy_backend_onnx.signature import Signature, TensorInfo

if TYPE_CHECKING:
    from google.protobuf.internal.containers import RepeatedCompositeFieldContainer

    from tritonpy_protos.model_config_pb2 import ModelConfig, ModelInput, ModelOutput


def needs_completion(config: ModelConfig) -> bool:
    """Return whether inputs or outputs are missing, so that the model must be opened."""
    return not (config.output and (config.input or config.batch_input))


def complete_config(
    config: ModelConfig, signature: Signature, default_max_batch_size: int
) -> ModelConfig:
    """Return a copy of `config` with tensors, batch size and batching filled in as in Triton.

    A model that supports batching gets `default_max_batch_size` if its `max_batch_size` is 0 or not
    set. Raises `InvalidArgument` if `max_batch_size` is set and the model does not support
    batching.
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
            f"autofill failed for model '{config.name}': model does not support batching while "
            "non-zero max_batch_size"
            " is specified"
        )
    # Clients do not see the tensors that the server manages for sequences.
    sequence = result.sequence_batching
    server_inputs = {
        *[each.name for each in sequence.control_input],
        *[state.input_name for state in sequence.state],
    }
    if not (result.input or result.batch_input):
        _add_fields(
            result.input, _exclude(signature.inputs, server_inputs), result.max_batch_size > 0
        )
    if not result.output:
        server_outputs = {state.output_name for state in sequence.state}
        _add_fields(
            result.output, _exclude(signature.outputs, server_outputs), result.max_batch_size > 0
        )
    return result


def _exclude(infos: Mapping[str, TensorInfo], names: Container[str]) -> Mapping[str, TensorInfo]:
    return {name: info for name, info in infos.items() if name not in names}


def _add_fields(
    fields: RepeatedCompositeFieldContainer[ModelInput]
    | RepeatedCompositeFieldContainer[ModelOutput],
    infos: Mapping[str, TensorInfo],
    batched: bool,
) -> None:
    for name, info in infos.items():
        field = fields.add(name=name, data_type=DATATYPES[info.datatype].number)
        set_dims(field, info.dims, batched)
