"""Pure checks of a model configuration against the model's signature, with Triton's error texts."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tritonpy import Internal, InvalidArgument
from tritonpy.config import DATATYPE_OF_NUMBER, dims_misfit, model_dims, shape_text, unable_to_load
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
    sequence = config.sequence_batching
    made = sum(len(each.target_name) for each in config.batch_input)
    expected = len(config.input) + made + len(sequence.control_input) + len(sequence.state)
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
    kind = DATATYPE_OF_NUMBER.get(field.data_type)
    if kind is None:
        raise Internal(
            f"unsupported datatype TYPE_INVALID for {what} '{field.name}' for model '{config.name}'"
        )
    if kind.name == "BYTES" and len(model_dims(field)) + (config.max_batch_size > 0) > 1:
        raise Internal(
            f"Triton only supports 1 dimensional List of String as {what} for '{field.name}' for "
            f"model '{config.name}'"
        )


def _check_tensor(config: ModelConfig, what: str, field: Field, info: TensorInfo) -> None:
    configured = DATATYPE_OF_NUMBER[field.data_type]
    if configured.name != info.datatype:
        raise unable_to_load(
            config,
            f"configuration expects datatype {configured.config_name} for {what} '{field.name}', "
            f"model provides TYPE_{info.datatype}",
        )
    ragged = getattr(field, "allow_ragged_batch", False)
    is_batch_output = any(field.name in each.target_name for each in config.batch_output)
    if not ragged and not is_batch_output:
        _check_dims(config, field, info)


def _check_dims(config: ModelConfig, field: Field, info: TensorInfo) -> None:
    dims, where = model_dims(field), f"model '{config.name}', tensor '{field.name}': "
    if (
        not info.dims and dims == (1,) and config.max_batch_size == 0
    ):  # clients see a scalar as one element
        return
    if config.max_batch_size > 0:
        if info.dims[:1] != (-1,):
            raise InvalidArgument(
                f"{where}for the model to support batching the shape should have at least 1 "
                "dimension and the first "
                f"dimension must be -1; but shape expected by the model is {shape_text(info.dims)}"
            )
        dims = (-1, *dims)
    if len(dims) != len(info.dims) or any(
        have not in (want, -1) for have, want in zip(info.dims, dims, strict=True)
    ):
        raise dims_misfit(config, field.name, info.dims, dims)
