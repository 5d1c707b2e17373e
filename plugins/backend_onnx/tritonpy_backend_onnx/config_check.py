"""Pure checks of a model configuration against the model's signature, with Triton's error texts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from tritonpy import Internal, InvalidArgument
from tritonpy.config import (
    DATATYPE_OF_NUMBER,
    control_inputs,
    dims_misfit,
    model_dims,
    shape_text,
    unable_to_load,
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
    made = sum(len(each.target_name) for each in config.batch_input)
    expected = required + made + controls + len(config.sequence_batching.state)
    if expected != len(signature.inputs):
        raise unable_to_load(
            config,
            f"configuration expects {expected} inputs, model provides {len(signature.inputs)}",
        )
    infos = {**signature.inputs, **signature.defaults}
    for field in config.input:
        _check_input(config, infos, field)
    for each in config.batch_input:
        for name in each.target_name:
            _check_datatype(
                config, f"batch input '{name}'", each.data_type, _find_input(infos, name)
            )


def _find_input(infos: Mapping[str, TensorInfo], name: str) -> TensorInfo:
    info = infos.get(name)
    if info is None:
        raise InvalidArgument(
            f"unexpected inference input '{name}', allowed inputs are: {', '.join(sorted(infos))}"
        )
    return info


def _check_input(config: ModelConfig, infos: Mapping[str, TensorInfo], field: ModelInput) -> None:
    if field.optional and config.max_batch_size != 0:
        raise unable_to_load(
            config,
            f"optional input '{field.name}' is not supported for models that support batching",
        )
    info = _find_input(infos, field.name)
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
    info = _find_output(infos, field.name)
    _check_datatype(config, f"output '{field.name}'", field.data_type, info)
    if not any(field.name in batch_output.target_name for batch_output in config.batch_output):
        _check_dims(config, field, info, exact=True)


def _check_states(config: ModelConfig, infos: Mapping[str, TensorInfo]) -> None:
    for state in config.sequence_batching.state:
        info = _find_output(infos, state.output_name)
        _check_datatype(config, f"output state '{state.output_name}'", state.data_type, info)


def _find_output(infos: Mapping[str, TensorInfo], name: str) -> TensorInfo:
    info = infos.get(name)
    if info is None:
        raise InvalidArgument(
            f"unexpected inference output '{name}', allowed outputs are: {', '.join(sorted(infos))}"
        )
    return info


def _check_datatype(config: ModelConfig, what: str, number: int, info: TensorInfo) -> None:
    configured = DATATYPE_OF_NUMBER.get(number)
    if configured is None:
        raise Internal(f"unsupported datatype TYPE_INVALID for {what} for model '{config.name}'")
    if configured.name != info.datatype:
        raise unable_to_load(
            config,
            (
                f"configuration expects datatype {configured.config_name} for {what}, "
                f"model provides TYPE_{info.datatype}"
            ),
        )


def _check_dims(
    config: ModelConfig, field: ModelInput | ModelOutput, info: TensorInfo, exact: bool
) -> None:
    """Check dimensions.

    With `exact`, a dynamic model dimension must be dynamic in `config`, too.
    """
    dims = model_dims(field)
    if not info.dims:
        _check_scalar(config, field.name, dims)
        return
    where = f"model '{config.name}', tensor '{field.name}': "
    batched = config.max_batch_size > 0
    if batched and info.dims[0] != -1:
        raise InvalidArgument(
            f"{where}for the model to support batching the shape should have at least 1 "
            "dimension and the first "
            f"dimension must be -1; but shape expected by the model is {shape_text(info.dims)}"
        )
    full = (-1, *dims) if batched else dims
    if _compatible(info.dims, full, exact):
        return
    raise dims_misfit(config, field.name, info.dims, full)


def _compatible(model: Sequence[int], configured: Sequence[int], exact: bool) -> bool:
    return len(model) == len(configured) and all(
        have == want or (have == -1 and not exact)
        for have, want in zip(model, configured, strict=True)
    )


def _check_scalar(config: ModelConfig, name: str, dims: Sequence[int]) -> None:
    if any(dim != 1 for dim in dims):
        raise unable_to_load(
            config,
            f"scalar tensor '{name}', should only provide 1 in the model configuration when the "
            "model doesn't support "
            f"batching. Model configuration provided: {shape_text(dims)}.",
        )


def _check_control(
    config: ModelConfig, inputs: Mapping[str, TensorInfo], name: str, number: int
) -> None:
    info = inputs.get(name)
    if info is None:
        raise Internal(
            f"configuration specified sequence control '{name}', but model does not provide that "
            "input"
        )
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
