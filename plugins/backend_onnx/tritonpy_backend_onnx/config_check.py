"""Pure checks of a model configuration against the model's signature, with Triton's error texts."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from tritonpy.config import (
    DATATYPE_OF_NUMBER,
    control_inputs,
    dims_misfit,
    model_dims,
    shape_text,
    unable_to_load,
)
from tritonpy_backend_kit.config_check import (
    check_batch_dimension,
    check_input_count,
    check_scalar,
    configured_datatype,
    datatype_mismatch,
    dims_match,
    find_tensor,
    input_count,
    missing_control,
)
from tritonpy_backend_onnx.signature import Signature, TensorInfo

if TYPE_CHECKING:
    from tritonpy_protos.model_config_pb2 import ModelConfig, ModelInput, ModelOutput


def check_config(config: ModelConfig, signature: Signature) -> None:
    """Raise an error for the first mismatch between `config` and `signature`.

    The error is `InvalidArgument`, or `Internal` for a sequence control that the model does not
    have.
    """
    controls = control_inputs(config)
    for name, datatype in controls:
        _check_control(config, signature.inputs, name, datatype)
    _check_inputs(config, signature, len(controls))
    for field in config.output:
        _check_output(config, signature.outputs, field)
    _check_states(config, signature.outputs)


def _check_inputs(config: ModelConfig, signature: Signature, controls: int) -> None:
    required = sum(not field.optional for field in config.input)
    expected = input_count(config, controls, required)
    check_input_count(config, expected, len(signature.inputs))
    infos = {**signature.inputs, **signature.defaults}
    for field in config.input:
        _check_input(config, infos, field)
    for each in config.batch_input:
        for name in each.target_name:
            _check_datatype(
                config, f"batch input '{name}'", each.data_type, find_tensor(infos, name, "input")
            )


def _check_input(config: ModelConfig, infos: Mapping[str, TensorInfo], field: ModelInput) -> None:
    if field.optional and config.max_batch_size != 0:
        raise unable_to_load(
            config,
            f"optional input '{field.name}' is not supported for models that support batching",
        )
    info = find_tensor(infos, field.name, "input")
    _check_datatype(config, f"input '{field.name}'", field.data_type, info)
    if field.allow_ragged_batch:
        _check_ragged(config, field, info)
    else:
        _check_dims(config, field, info, exact=False)


def _check_ragged(config: ModelConfig, field: ModelInput, info: TensorInfo) -> None:
    if field.optional:
        raise unable_to_load(
            config,
            "configuration expects model provides input with shape [-1] for ragged input "
            f"'{field.name}', "
            "which is not supported for optional input",
        )
    if info.dims != (-1,):
        raise unable_to_load(
            config,
            "configuration expects model provides input with shape [-1]  for ragged input "
            f"'{field.name}', "
            f"model provides {shape_text(info.dims)}",
        )


def _check_output(config: ModelConfig, infos: Mapping[str, TensorInfo], field: ModelOutput) -> None:
    info = find_tensor(infos, field.name, "output")
    _check_datatype(config, f"output '{field.name}'", field.data_type, info)
    if not any(field.name in batch_output.target_name for batch_output in config.batch_output):
        _check_dims(config, field, info, exact=True)


def _check_states(config: ModelConfig, infos: Mapping[str, TensorInfo]) -> None:
    for state in config.sequence_batching.state:
        info = find_tensor(infos, state.output_name, "output")
        _check_datatype(config, f"output state '{state.output_name}'", state.data_type, info)


def _check_datatype(config: ModelConfig, what: str, number: int, info: TensorInfo) -> None:
    configured = configured_datatype(config, what, number)
    if configured.name != info.datatype:
        raise datatype_mismatch(config, what, configured, info.datatype)


def _check_dims(
    config: ModelConfig, field: ModelInput | ModelOutput, info: TensorInfo, exact: bool
) -> None:
    """Check dimensions.

    With `exact`, a dynamic model dimension must be dynamic in `config`, too.
    """
    dims = model_dims(field)
    if not info.dims:
        check_scalar(config, field.name, dims)
        return
    check_batch_dimension(config, field.name, info.dims)
    full = (-1, *dims) if config.max_batch_size > 0 else dims
    if dims_match(info.dims, full, exact):
        return
    raise dims_misfit(config, field.name, info.dims, full)


def _check_control(
    config: ModelConfig, inputs: Mapping[str, TensorInfo], name: str, number: int
) -> None:
    info = inputs.get(name)
    if info is None:
        raise missing_control(name)
    dims = info.dims[1:] if config.max_batch_size > 0 else info.dims
    if dims != (1,):
        raise unable_to_load(
            config,
            (
                f"sequence control '{name}' in model has dims {shape_text(dims)} but dims [1] is "
                "expected"
            ),
        )
    configured = DATATYPE_OF_NUMBER[number]
    if configured.name != info.datatype:
        raise unable_to_load(
            config,
            f"sequence control '{name}', the model expects data-type "
            f"{_ONNX_NAMES.get(info.datatype, info.datatype)} "
            f"but the model configuration specifies data-type {configured.config_name}",
        )


_ONNX_NAMES = {
    "FP16": "FLOAT16",
    "FP32": "FLOAT",
    "FP64": "DOUBLE",
    "BF16": "BFLOAT16",
    "BYTES": "STRING",
}
