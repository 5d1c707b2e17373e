"""Pure checks of a model configuration against the engine, with Triton's error texts."""

from __future__ import annotations

from collections.abc import Collection
from typing import TYPE_CHECKING

from tritonpy import Internal, InvalidArgument, NotFound
from tritonpy.config import DATATYPE_OF_NUMBER, dims_misfit, model_dims, shape_text
from tritonpy_backend_kit.config_check import find_tensor
from tritonpy_backend_trt.config_inputs import (
    WILDCARD,
    ConfigInput,
    config_inputs,
    datatype_of_number,
)
from tritonpy_backend_trt.signature import Shape, Signature, TensorInfo

if TYPE_CHECKING:
    from tritonpy_protos.model_config_pb2 import ModelConfig, ModelInput, ModelOutput

_SUPPORTED_DATATYPES = {"FP32", "FP16", "BF16", "INT8", "UINT8", "INT32", "INT64", "BOOL"}
_SHAPE_TYPES = {"INT32", "INT64"}


def check_config(config: ModelConfig, signature: Signature, instance: str) -> None:
    """Raise `InvalidArgument`, `NotFound` or `Internal` for the first mismatch.

    `instance` is the instance name in the error texts.
    """
    if len(config.input) > len(signature.inputs):
        raise InvalidArgument(
            f"unable to load model '{config.name}', configuration expects {len(config.input)} "
            "inputs, model provides at most "
            f"{len(signature.inputs)}"
        )
    check_names(config, signature)
    for given in config.input:
        _check_attributes(config, given, "input", signature.tensors[given.name])
    for wanted in config.output:
        _check_attributes(config, wanted, "output", signature.tensors[wanted.name])
    seen = _check_inputs(config, signature, instance)
    seen |= _check_outputs(config, signature, instance)
    for name, info in signature.tensors.items():
        if name not in seen:
            kind = "input" if info.is_input else "output"
            raise InvalidArgument(f"expected configuration for {kind} '{name}' for {instance}")


def check_names(config: ModelConfig, signature: Signature) -> None:
    """Raise `InvalidArgument` if the engine lacks a configured input or output."""
    for kind, fields, allowed in (
        ("input", config.input, signature.inputs),
        ("output", config.output, signature.outputs),
    ):
        for field in fields:
            find_tensor(allowed, field.name, kind)


def _check_attributes(
    config: ModelConfig, field: ModelInput | ModelOutput, kind: str, info: TensorInfo
) -> None:
    subject = f"{kind} '{field.name}' for model '{config.name}'"
    if datatype_of_number(field.data_type) not in _SUPPORTED_DATATYPES:
        known = DATATYPE_OF_NUMBER.get(field.data_type)
        raise Internal(
            f"unsupported datatype {known.config_name if known else 'TYPE_INVALID'} for {subject}"
        )
    if info.is_shape and not field.is_shape_tensor:
        raise Internal(
            f"{subject} is a shape tensor but the model configuration doesn't mark it as a shape "
            "tensor."
        )
    if field.is_shape_tensor and not info.is_shape:
        raise Internal(
            f"{subject} is incorrectly marked as a shape tensor in the model configuration."
        )
    if (info.packing is not None) != field.is_non_linear_format_io:
        found, configured = (
            ("a linear", "true") if field.is_non_linear_format_io else ("a non-linear", "false")
        )
        raise Internal(
            f"{subject} uses {found} IO format, but 'is_non_linear_format_io' is incorrectly set "
            f"to {configured} in the model "
            "configuration."
        )


def _check_inputs(config: ModelConfig, signature: Signature, instance: str) -> set[str]:
    seen: set[str] = set()
    for each in config_inputs(config):
        info = signature.tensors.get(each.name)
        if info is None:
            raise NotFound(f"input '{each.name}' not found for {instance}")
        if not info.is_input:
            raise InvalidArgument(
                f"input '{each.name}' is expected to be an input in model for {instance}"
            )
        # One tensor may carry several controls, and a state may be listed as an input, too.
        if each.name in seen and each.role not in {"state", "control"}:
            raise InvalidArgument(
                f"input '{each.name}'  has already appeared as an input or output for {instance}"
            )
        seen.add(each.name)
        if info.is_shape:
            _check_shape_input(config, each, info, instance)
        else:
            _check_input(config, each, info, instance)
    return seen


def _check_input(config: ModelConfig, each: ConfigInput, info: TensorInfo, instance: str) -> None:
    batched = config.max_batch_size > 0
    _check_datatype(info, each.datatype, "inference input", instance)
    _check_packing(info, instance)
    if each.role == "control" and WILDCARD in info.dims:
        _check_control(config, info)
    elif each.ragged:
        _check_ragged(config, each, info, instance)
    else:
        _check_dims(config, info, each.dims, batched)


def _check_shape_input(
    config: ModelConfig, each: ConfigInput, info: TensorInfo, instance: str
) -> None:
    if each.datatype not in _SHAPE_TYPES:
        raise InvalidArgument(
            f"unexpected datatype TYPE_{each.datatype} in model configuration for shape input "
            f"'{each.name}', expecting "
            f"TYPE_INT32 or TYPE_INT64 for {instance}"
        )
    if info.datatype != each.datatype:
        raise InvalidArgument(
            f"unexpected datatype TYPE_{info.datatype} in engine for shape input '{each.name}', "
            "expecting "
            f"TYPE_{each.datatype} for {instance}"
        )
    _check_shape_dims(config, instance, info, each.dims)


def _check_outputs(config: ModelConfig, signature: Signature, instance: str) -> set[str]:
    batched = config.max_batch_size > 0
    batch_outputs = _batch_outputs(config, signature)
    seen: set[str] = set()
    for field in config.output:
        info, datatype = signature.tensors[field.name], datatype_of_number(field.data_type)
        if field.name in seen:
            raise InvalidArgument(
                f"output '{field.name}'  has already appeared as an input or output for {instance}"
            )
        seen.add(field.name)
        if info.is_shape:
            _check_shape_output(config, info, datatype, model_dims(field), instance)
            continue
        _check_datatype(info, datatype, "inference output", instance)
        _check_packing(info, instance)
        if field.name in batch_outputs:
            _check_batch_output(info, instance)
        else:
            _check_dims(config, info, model_dims(field), batched)
    for state in config.sequence_batching.state:
        found = signature.outputs.get(state.output_name)
        if found is None:
            raise NotFound(f"output '{state.output_name}' not found for {instance}")
        _check_datatype(found, datatype_of_number(state.data_type), "inference output", instance)
        _check_dims(config, found, tuple(state.dims), batched)
        seen.add(state.output_name)
    return seen


def _check_shape_output(
    config: ModelConfig, info: TensorInfo, datatype: str, dims: Shape, instance: str
) -> None:
    if datatype != "INT64":
        raise InvalidArgument(
            f"unexpected datatype 'TYPE_{datatype} in model configuration for shape output "
            f"'{info.name}', expecting "
            f"TYPE_INT64 for {instance}"
        )
    _check_datatype(info, datatype, "inference output", instance)
    _check_shape_dims(config, instance, info, dims)


def _batch_outputs(config: ModelConfig, signature: Signature) -> Collection[str]:
    names = {name for each in config.batch_output for name in each.target_name}
    for name in names & signature.tensors.keys():
        if signature.tensors[name].is_shape:
            raise InvalidArgument(f"batch output '{name}' can not be shape binding")
    return names


def _check_batch_output(info: TensorInfo, instance: str) -> None:
    if info.packing is not None:
        raise InvalidArgument(
            f"unexpected allow-ragged for non-linear output '{info.name}' for {instance}"
        )


def _check_datatype(info: TensorInfo, configured: str, what: str, instance: str) -> None:
    if info.datatype != configured:
        raise InvalidArgument(
            f"unexpected datatype TYPE_{info.datatype} for {what} '{info.name}', "
            f"expecting TYPE_{configured} for {instance}"
        )


def _check_packing(info: TensorInfo, instance: str) -> None:
    if info.packing is not None and info.packing.dimension < 0:
        raise InvalidArgument(
            f"unexpected vectorized dim is -1 for non-linear tensor '{info.name}' for {instance}"
        )


def _check_ragged(config: ModelConfig, each: ConfigInput, info: TensorInfo, instance: str) -> None:
    if len(info.dims) != 1 or info.dims != each.dims[:1]:
        raise InvalidArgument(
            f"model '{config.name}', tensor '{each.name}': for the model to support ragged "
            "input, the engine shape is: "
            f"{shape_text(info.dims)} while the model config shape is: {shape_text(each.dims)}"
        )
    if info.packing is not None:
        raise Internal(f"unexpected allow-ragged for non-linear input '{each.name}' for {instance}")


def _check_control(config: ModelConfig, info: TensorInfo) -> None:
    expected = WILDCARD if config.max_batch_size > 0 else 1
    problem = ""
    if info.dims[0] != expected:
        problem = (
            f"expects the first dimension to be {expected} but the model specified {info.dims[0]}"
        )
    elif any(size != 1 for size in info.dims[1:]):
        problem = (
            "expects all dimensions (conditionally first) to be 1 but the model specified shape "
            f"{shape_text(info.dims)}"
        )
    if problem:
        raise InvalidArgument(
            f"unexpected shape {shape_text(info.dims)} for control input '{info.name}' for model "
            f"{config.name}: {problem}"
        )


def _check_dims(config: ModelConfig, info: TensorInfo, dims: Shape, batched: bool) -> None:
    where = f"model '{config.name}', tensor '{info.name}': "
    if batched and not info.dims:
        raise InvalidArgument(
            f"{where}for the model to support batching the shape should have at least 1 "
            "dimension; but shape expected by the "
            f"model is {shape_text(info.dims)}"
        )
    full = (WILDCARD, *dims) if batched else dims
    if len(info.dims) == len(full) and all(
        WILDCARD in {have, want} or have == want for have, want in zip(info.dims, full, strict=True)
    ):
        return
    raise dims_misfit(config, info.name, info.dims, full)


def _check_shape_dims(config: ModelConfig, subject: str, info: TensorInfo, dims: Shape) -> None:
    if len(info.dims) > 1:
        raise Internal(
            f"unable to load model '{subject}', shape binding '{info.name}' can only be 0-d or "
            "1-D tensor, got "
            f"{shape_text(info.dims)}"
        )
    extra = 1 if config.max_batch_size > 0 else 0
    if len(dims) != len(info.dims) or (
        dims and (dims[0] == WILDCARD or dims[0] + extra != info.dims[0])
    ):
        raise Internal(
            f"unable to load model '{subject}', binding '{info.name}' shape expected by "
            f"framework {shape_text(info.dims)} "
            f"doesn't match model configuration shape {shape_text(dims)}"
        )
