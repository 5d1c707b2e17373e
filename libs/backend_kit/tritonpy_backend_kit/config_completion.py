"""Completes a model configuration from the tensors that a model file describes."""

from __future__ import annotations

from collections.abc import Container, Mapping
from typing import TYPE_CHECKING, Protocol, TypeVar

from tritonpy import DATATYPES, InvalidArgument, ModelContext
from tritonpy.config import set_dims

if TYPE_CHECKING:
    from google.protobuf.internal.containers import RepeatedCompositeFieldContainer

    from tritonpy_protos.model_config_pb2 import ModelConfig, ModelInput, ModelOutput


class TensorInfo(Protocol):
    """What a model file says about one input or output."""

    @property
    def datatype(self) -> str:
        """The protocol's datatype, such as FP32."""

    @property
    def dims(self) -> tuple[int, ...] | None:
        """The shape with the batch dimension; -1 is dynamic, None an unknown rank."""


Info = TypeVar("Info", bound=TensorInfo)


def needs_completion(config: ModelConfig) -> bool:
    """Return whether inputs or outputs are missing, so that the model must be opened."""
    return not (config.output and (config.input or config.batch_input))


def copied(config: ModelConfig) -> ModelConfig:
    """Return a copy that may be changed."""
    result = type(config)()
    result.CopyFrom(config)
    return result


def complete_config(
    config: ModelConfig,
    inputs: Mapping[str, TensorInfo],
    outputs: Mapping[str, TensorInfo],
    *,
    can_batch: bool,
    max_batch_size: int,
) -> ModelConfig:
    """Return a copy of `config` with tensors, batch size and batching filled in as in Triton.

    `inputs` and `outputs` are those of the model by the names that clients use. A model that
    `can_batch` gets `max_batch_size` if its own is 0 or not set, and dynamic batching if it sets no
    other scheduling. Tensors are added only if `config` has none, without those that the server
    makes itself. Raises `InvalidArgument` for a tensor of unknown rank.
    """
    result = copied(config)
    if can_batch:
        result.max_batch_size = result.max_batch_size or max(max_batch_size, 0)
        enable_dynamic_batching(result)
    batched = result.max_batch_size > 0
    if not (result.input or result.batch_input):
        _add_fields(result.input, without(inputs, server_inputs(result)), batched)
    if not result.output:
        _add_fields(result.output, without(outputs, server_outputs(result)), batched)
    return result


def enable_dynamic_batching(config: ModelConfig) -> None:
    """Turn dynamic batching on for a model with batches that chooses no scheduler."""
    if config.max_batch_size > 1 and config.WhichOneof("scheduling_choice") is None:
        config.dynamic_batching.SetInParent()


def refuse_batching(config: ModelConfig) -> None:
    """Raise Triton's `InvalidArgument` if `config` sets a batch size; the model cannot batch."""
    if config.max_batch_size != 0:
        raise InvalidArgument(
            f"autofill failed for model '{config.name}': model does not support batching while "
            "non-zero max_batch_size is specified"
        )


def server_inputs(config: ModelConfig) -> set[str]:
    """Return the inputs that the server makes: batch inputs, sequence controls and states."""
    sequence = config.sequence_batching
    return {
        *[name for each in config.batch_input for name in each.target_name],
        *[each.name for each in sequence.control_input],
        *[state.input_name for state in sequence.state],
    }


def server_outputs(config: ModelConfig) -> set[str]:
    """Return the outputs that the server keeps as sequence states; clients do not see them."""
    return {state.output_name for state in config.sequence_batching.state}


def without(infos: Mapping[str, Info], names: Container[str]) -> dict[str, Info]:
    """Return `infos` in its order, without `names`."""
    return {name: info for name, info in infos.items() if name not in names}


def log_batch_size(model: ModelContext, completed: ModelConfig) -> None:
    """Log the batch size that the model got from the defaults, if it did."""
    if completed.max_batch_size != model.config.max_batch_size:
        model.log.info(
            "model '%s' supports batching and its configuration sets no max_batch_size: using %d",
            model.name,
            completed.max_batch_size,
        )


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
