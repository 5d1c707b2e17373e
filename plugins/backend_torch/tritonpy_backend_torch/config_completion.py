"""Pure completion of a model configuration from the model's signature."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from tritonpy import DATATYPES, InvalidArgument
from tritonpy.config import set_dims
from tritonpy_backend_torch.signature import Signature, TensorSpec

if TYPE_CHECKING:
    from google.protobuf.internal.containers import RepeatedCompositeFieldContainer

    from tritonpy_protos.model_config_pb2 import ModelConfig, ModelInput, ModelOutput


def needs_completion(config: ModelConfig) -> bool:
    """Return whether inputs or outputs are missing, so that the model file must be read."""
    return not (config.output and (config.input or config.batch_input))


def complete_config(
    config: ModelConfig, signature: Signature, default_max_batch_size: int
) -> ModelConfig:
    """Return a copy of `config` with inputs, outputs, batch size and batching filled in.

    `signature` must be complete. A model that supports batching gets `default_max_batch_size`,
    limited to the largest batch that it was exported for, if its `max_batch_size` is 0 or not set.
    Raises `InvalidArgument` if `max_batch_size` is set and the model does not support batching.
    """
    result = type(config)()
    result.CopyFrom(config)
    if signature.max_rows == 0 and config.max_batch_size != 0:
        raise InvalidArgument(
            f"autofill failed for model '{config.name}': model does not support batching while "
            "non-zero max_batch_size"
            " is specified"
        )
    if result.max_batch_size == 0:
        result.max_batch_size = max(min(default_max_batch_size, signature.max_rows), 0)
    if result.max_batch_size > 1 and result.WhichOneof("scheduling_choice") is None:
        result.dynamic_batching.SetInParent()
    sequence = result.sequence_batching
    # Clients do not see the tensors that the server manages for sequences.
    own = {name for state in sequence.state for name in (state.input_name, state.output_name)}
    own.update(each.name for each in sequence.control_input)
    batched = result.max_batch_size > 0
    if not (result.input or result.batch_input):
        _add_fields(
            result.input,
            [spec for spec in signature.client_inputs if own.isdisjoint(spec.names)],
            batched,
        )
    if not result.output:
        _add_fields(
            result.output,
            [spec for spec in signature.outputs if own.isdisjoint(spec.names)],
            batched,
        )
    return result


def _add_fields(
    fields: RepeatedCompositeFieldContainer[ModelInput]
    | RepeatedCompositeFieldContainer[ModelOutput],
    specs: Sequence[TensorSpec],
    batched: bool,
) -> None:
    for spec in specs:
        assert spec.info is not None, "only a complete signature completes: this is a bug"  # noqa: S101
        field = fields.add(name=spec.names[0], data_type=DATATYPES[spec.info.datatype].number)
        set_dims(field, spec.info.dims, batched)
