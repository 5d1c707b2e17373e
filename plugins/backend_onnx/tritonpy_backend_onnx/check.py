"""Checks a model configuration against the model's signature, with Triton's texts. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from tritonpy import DATATYPE_OF_NUMBER, Internal, InvalidArgument
from tritonpy_backend_onnx.signature import Signature, TensorInfo

if TYPE_CHECKING:
    from tritonpy_protos.model_config_pb2 import ModelConfig, ModelInput, ModelOutput, ModelSequenceBatching


def check(config: ModelConfig, signature: Signature) -> None:
    """Raise InvalidArgument (Internal for a control that the model lacks) at the first thing that does not fit."""
    controls = list(_controls(config.sequence_batching))
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
        raise _unable(config, f"configuration expects {expected} inputs, model provides {len(signature.inputs)}")
    known = {**signature.inputs, **signature.defaults}
    for field in config.input:
        _check_input(config, known, field)
    for each in config.batch_input:
        for name in each.target_name:
            _check_datatype(config, f"batch input '{name}'", each.data_type, _known_input(known, name))


def _known_input(known: Mapping[str, TensorInfo], name: str) -> TensorInfo:
    info = known.get(name)
    if info is None:
        raise InvalidArgument(f"unexpected inference input '{name}', allowed inputs are: {', '.join(sorted(known))}")
    return info


def _check_input(config: ModelConfig, known: Mapping[str, TensorInfo], field: ModelInput) -> None:
    if field.optional and config.max_batch_size != 0:
        raise _unable(config, f"optional input '{field.name}' is not supported for models that support batching")
    info = _known_input(known, field.name)
    _check_datatype(config, f"input '{field.name}'", field.data_type, info)
    if field.allow_ragged_batch:
        _check_ragged(config, field, info)
    else:
        _check_dims(config, field, info, exact=False)


def _check_ragged(config: ModelConfig, field: ModelInput, info: TensorInfo) -> None:
    if field.optional:
        raise _unable(
            config,
            f"configuration expects model provides input with shape [-1] for ragged input '{field.name}', "
            "which is not supported for optional input",
        )
    if info.dims != (-1,):
        raise _unable(
            config,
            f"configuration expects model provides input with shape [-1]  for ragged input '{field.name}', "
            f"model provides {_shape(info.dims)}",
        )


def _check_output(config: ModelConfig, known: Mapping[str, TensorInfo], field: ModelOutput) -> None:
    info = _known_output(known, field.name)
    _check_datatype(config, f"output '{field.name}'", field.data_type, info)
    if not any(field.name in batch_output.target_name for batch_output in config.batch_output):
        _check_dims(config, field, info, exact=True)


def _check_states(config: ModelConfig, known: Mapping[str, TensorInfo]) -> None:
    for state in config.sequence_batching.state:
        info = _known_output(known, state.output_name)
        _check_datatype(config, f"output state '{state.output_name}'", state.data_type, info)


def _known_output(known: Mapping[str, TensorInfo], name: str) -> TensorInfo:
    info = known.get(name)
    if info is None:
        raise InvalidArgument(f"unexpected inference output '{name}', allowed outputs are: {', '.join(sorted(known))}")
    return info


def _check_datatype(config: ModelConfig, what: str, number: int, info: TensorInfo) -> None:
    configured = DATATYPE_OF_NUMBER.get(number)
    if configured is None:
        raise Internal(f"unsupported datatype TYPE_INVALID for {what} for model '{config.name}'")
    if configured.name != info.datatype:
        raise _unable(
            config,
            f"configuration expects datatype {configured.config_name} for {what}, model provides TYPE_{info.datatype}",
        )


def _check_dims(config: ModelConfig, field: ModelInput | ModelOutput, info: TensorInfo, exact: bool) -> None:
    """With `exact`, an open dimension of the model must be open in the configuration too."""
    dims = tuple(field.reshape.shape if field.HasField("reshape") else field.dims)
    if not info.dims:
        _check_scalar(config, field.name, dims)
        return
    where = f"model '{config.name}', tensor '{field.name}': "
    batched = config.max_batch_size > 0
    if batched and info.dims[0] != -1:
        raise InvalidArgument(
            f"{where}for the model to support batching the shape should have at least 1 dimension and the first "
            f"dimension must be -1; but shape expected by the model is {_shape(info.dims)}"
        )
    full = (-1, *dims) if batched else dims
    if _compatible(info.dims, full, exact):
        return
    complete = (
        f"{len(full)} dimensions (an initial batch dimension because max_batch_size > 0 followed by the explicit "
        f"tensor shape, making complete shape {_shape(full)})"
        if batched
        else f"{len(full)} dimensions (shape {_shape(full)})"
    )
    raise InvalidArgument(
        f"{where}the model expects {len(info.dims)} dimensions (shape {_shape(info.dims)}) but the model configuration "
        f"specifies {complete}"
    )


def _compatible(model: Sequence[int], configured: Sequence[int], exact: bool) -> bool:
    return len(model) == len(configured) and all(
        have == want or (have == -1 and not exact) for have, want in zip(model, configured, strict=True)
    )


def _check_scalar(config: ModelConfig, name: str, dims: Sequence[int]) -> None:
    if any(dim != 1 for dim in dims):
        raise _unable(
            config,
            f"scalar tensor '{name}', should only provide 1 in the model configuration when the model doesn't support "
            f"batching. Model configuration provided: {_shape(dims)}.",
        )


def _controls(sequence: ModelSequenceBatching) -> Iterator[tuple[str, int]]:
    """Name and data type of each control input, in Triton's order of kinds."""
    kinds = sequence.Control.Kind
    for kind in (
        kinds.CONTROL_SEQUENCE_START, kinds.CONTROL_SEQUENCE_END,
        kinds.CONTROL_SEQUENCE_READY, kinds.CONTROL_SEQUENCE_CORRID,
    ):  # fmt: skip
        for tensor in sequence.control_input:
            for control in tensor.control:
                if control.kind == kind:
                    yield tensor.name, _control_type(control)


def _control_type(control: ModelSequenceBatching.Control) -> int:
    if control.int32_false_true:
        return _number("INT32")
    if control.fp32_false_true:
        return _number("FP32")
    if control.bool_false_true:
        return _number("BOOL")
    return control.data_type


def _number(name: str) -> int:
    return next(number for number, kind in DATATYPE_OF_NUMBER.items() if kind.name == name)


def _check_control(config: ModelConfig, inputs: Mapping[str, TensorInfo], name: str, number: int) -> None:
    info = inputs.get(name)
    if info is None:
        raise Internal(f"configuration specified sequence control '{name}', but model does not provide that input")
    dims = info.dims[1:] if config.max_batch_size > 0 else info.dims
    if dims != (1,):
        raise _unable(config, f"sequence control '{name}' in model has dims {_shape(dims)} but dims [1] is expected")
    configured = DATATYPE_OF_NUMBER[number]
    if configured.name != info.datatype:
        raise _unable(
            config,
            f"sequence control '{name}', the model expects data-type {_ONNX_NAMES.get(info.datatype, info.datatype)} "
            f"but the model configuration specifies data-type {configured.config_name}",
        )


_ONNX_NAMES = {"FP16": "FLOAT16", "FP32": "FLOAT", "FP64": "DOUBLE", "BF16": "BFLOAT16", "BYTES": "STRING"}


def _unable(config: ModelConfig, what: str) -> InvalidArgument:
    return InvalidArgument(f"unable to load model '{config.name}', {what}")


def _shape(dims: Sequence[int]) -> str:
    return f"[{','.join(map(str, dims))}]"
