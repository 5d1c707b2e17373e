"""Pure checks of a model configuration against the model's signature, with Triton's error texts."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tritonpy import Internal
from tritonpy.config import DATATYPE_OF_NUMBER, dims_misfit, model_dims, unable_to_load
from tritonpy_backend_kit.config_check import (
    check_batch_dimension,
    configured_datatype,
    datatype_mismatch,
    input_count,
)
from tritonpy_backend_torch.signature import Signature, TensorInfo

if TYPE_CHECKING:
    from tritonpy_protos.model_config_pb2 import ModelConfig, ModelInput, ModelOutput

    Field = ModelInput | ModelOutput


def check_config(config: ModelConfig, signature: Signature) -> None:
    """Raise a `TritonError` for the first mismatch between `config` and `signature`."""
    _check_present(config)
    if not signature.takes_dict and signature.client_inputs:
        _check_count(config, signature)
    for what, fields, specs, numbers in (
        ("input", config.input, signature.inputs, signature.input_numbers()),
        ("output", config.output, signature.outputs, signature.output_numbers()),
    ):
        for field in fields:
            _check_field(config, what, field)
            number = numbers.get(field.name)
            info = None if number is None else specs[number].info
            if info is not None:
                _check_tensor(config, what, field, info)
    if 0 < signature.max_rows < config.max_batch_size:
        raise unable_to_load(
            config,
            (
                f"max_batch_size is {config.max_batch_size}, the model was exported for "
                f"{signature.max_rows} rows at most"
            ),
        )


def _check_present(config: ModelConfig) -> None:
    for what, fields in (("input", config.input), ("output", config.output)):
        if not fields:
            raise Internal(
                f"model configuration must contain at least one {what}, none were specified."
                f" The file does not describe them: config.pbtxt needs each {what} with name, "
                "data_type and dims"
            )


def _check_count(config: ModelConfig, signature: Signature) -> None:
    expected = input_count(config, len(config.sequence_batching.control_input))
    required = sum(spec.required for spec in signature.client_inputs)
    if not required <= expected <= len(signature.client_inputs):
        raise unable_to_load(
            config,
            (
                f"configuration expects {expected} inputs, model provides "
                f"{len(signature.client_inputs)}"
            ),
        )


def _check_field(config: ModelConfig, what: str, field: Field) -> None:
    kind = configured_datatype(config, f"{what} '{field.name}'", field.data_type)
    if kind.name == "BYTES" and len(model_dims(field)) + (config.max_batch_size > 0) > 1:
        raise Internal(
            f"Triton only supports 1 dimensional List of String as {what} for '{field.name}' for "
            f"model '{config.name}'"
        )


def _check_tensor(config: ModelConfig, what: str, field: Field, info: TensorInfo) -> None:
    configured = DATATYPE_OF_NUMBER[field.data_type]
    if configured.name != info.datatype:
        raise datatype_mismatch(config, f"{what} '{field.name}'", configured, info.datatype)
    ragged = getattr(field, "allow_ragged_batch", False)
    is_batch_output = any(field.name in each.target_name for each in config.batch_output)
    if not ragged and not is_batch_output:
        _check_dims(config, field, info)


def _check_dims(config: ModelConfig, field: Field, info: TensorInfo) -> None:
    dims = model_dims(field)
    if (
        not info.dims and dims == (1,) and config.max_batch_size == 0
    ):  # clients see a scalar as one element
        return
    check_batch_dimension(config, field.name, info.dims)
    if config.max_batch_size > 0:
        dims = (-1, *dims)
    if len(dims) != len(info.dims) or any(
        have not in (want, -1) for have, want in zip(info.dims, dims, strict=True)
    ):
        raise dims_misfit(config, field.name, info.dims, dims)
