"""Pure completion of a model configuration from the model's signature."""

from __future__ import annotations

from collections.abc import Container, Mapping
from typing import TYPE_CHECKING

from tritonpy import DATATYPES, InvalidArgument
from tritonpy.config import set_dims
from tritonpy_backend_openvino.signature import Signature, TensorInfo

if TYPE_CHECKING:
    from google.protobuf.internal.containers import RepeatedCompositeFieldContainer

    from tritonpy_protos.model_config_pb2 import ModelConfig, ModelInput, ModelOutput

# Image clients read the format to lay out their pixels.
_FORMATS = {"[N,C,H,W]": "FORMAT_NCHW", "[N,H,W,C]": "FORMAT_NHWC"}


def needs_completion(config: ModelConfig) -> bool:
    """Return whether inputs or outputs are missing, so that the model must be opened."""
    return not (config.output and (config.input or config.batch_input))


def complete_config(
    config: ModelConfig, signature: Signature, default_max_batch_size: int
) -> ModelConfig:
    """Return a copy of `config` with inputs, outputs, batch size and batching filled in.

    A model that supports batching gets `default_max_batch_size`, but at least 1, if its
    `max_batch_size` is 0 or not set. Raises `InvalidArgument` for a tensor whose number of
    dimensions is dynamic.
    """
    result = type(config)()
    result.CopyFrom(config)
    if signature.can_batch:
        result.max_batch_size = result.max_batch_size or max(default_max_batch_size, 1)
        if result.max_batch_size > 1 and result.WhichOneof("scheduling_choice") is None:
            result.dynamic_batching.SetInParent()
    batched = result.max_batch_size > 0
    # Clients do not see the tensors that the server manages for sequences.
    sequence = result.sequence_batching
    server_inputs = {
        *[each.name for each in sequence.control_input],
        *[state.input_name for state in sequence.state],
    }
    if not (result.input or result.batch_input):
        inputs = _exclude(signature.inputs, server_inputs)
        _add_fields(result.input, inputs, batched)
        if batched:
            for field in result.input:
                _set_format(field, inputs[field.name])
    if not result.output:
        _add_fields(
            result.output,
            _exclude(signature.outputs, {state.output_name for state in sequence.state}),
            batched,
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
        if info.dims is None:
            raise InvalidArgument(
                f"the number of dimensions of '{name}' is dynamic in the model: "
                "the configuration must set its dims"
            )
        field = fields.add(name=name, data_type=DATATYPES[info.datatype].number)
        set_dims(field, info.dims, batched)


def _set_format(field: ModelInput, info: TensorInfo) -> None:
    if len(field.dims) == 3 and info.layout in _FORMATS:
        field.format = getattr(field, _FORMATS[info.layout])
