"""Pure completion of a model configuration from the engine's tensors and profiles."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from tritonpy import DATATYPES, Internal, InvalidArgument
from tritonpy.config import model_dims
from tritonpy_backend_kit.config_completion import (
    copied,
    server_inputs,
    server_outputs,
    without,
)
from tritonpy_backend_trt.config_check import check_names
from tritonpy_backend_trt.limits import max_rows
from tritonpy_backend_trt.signature import Signature, TensorInfo

if TYPE_CHECKING:
    from tritonpy_protos.model_config_pb2 import ModelConfig, ModelInput, ModelOutput

Log = logging.LoggerAdapter[logging.Logger]


def complete_config(config: ModelConfig, signature: Signature, log: Log) -> ModelConfig:
    """Return a copy of `config` with tensors, batch size and batching filled in as in Triton.

    The batch size is the largest that a selected profile supports. Raises `Internal` if `config`
    requires a larger one or contradicts itself about batching, `InvalidArgument` for tensors that
    do not match the engine.
    """
    result = copied(config)
    rows = _batch_rows(result, signature, log)
    if result.max_batch_size == 0:
        result.max_batch_size = rows
    elif result.max_batch_size > rows:
        raise Internal(
            f"autofill failed for model '{config.name}': configuration specified max-batch "
            f"{result.max_batch_size} but "
            f"TensorRT engine only supports max-batch {rows}"
        )
    if rows > 1 and result.WhichOneof("scheduling_choice") is None:
        result.dynamic_batching.SetInParent()
    _add_fields(
        result.input, without(signature.inputs, server_inputs(result)), result.max_batch_size > 0
    )
    _add_fields(
        result.output, without(signature.outputs, server_outputs(result)), result.max_batch_size > 0
    )
    return result


def _batch_rows(config: ModelConfig, signature: Signature, log: Log) -> int:
    """Return the largest batch; 0 if the configured shapes leave no batch dimension."""
    check_names(config, signature)
    rows = _largest_batch(config, signature)
    fields: list[ModelInput | ModelOutput] = [*config.input, *config.output]
    ragged = any(field.allow_ragged_batch for field in config.input)
    hints = [
        _hints_batch(field, signature.tensors[field.name]) for field in fields if model_dims(field)
    ]
    if not ragged and any(hints) and not all(hints):
        raise Internal(
            f"unable to autofill for '{config.name}', model tensor configurations are "
            "contradicting each other in terms of "
            "whether batching is supported"
        )
    if (ragged or any(hints)) and rows == 0:
        raise Internal(
            f"autofill failed for model '{config.name}': model tensor shape configuration hints "
            "for dynamic batching but "
            "the underlying engine doesn't support batching."
        )
    if hints and not ragged and not any(hints):
        log.warning(
            "The specified dimensions in model config for %s hints that batching is unavailable",
            config.name,
        )
        return 0
    return rows


def _hints_batch(field: ModelInput | ModelOutput, info: TensorInfo) -> bool:
    dims = model_dims(field)
    return info.dims[:1] == (dims[0] + 1,) if info.is_shape else len(info.dims) == len(dims) + 1


def _largest_batch(config: ModelConfig, signature: Signature) -> int:
    chosen = {int(name): name for group in config.instance_group for name in group.profile} or {
        0: ""
    }
    for index, name in chosen.items():
        if index >= len(signature.profiles):
            raise Internal(
                f"unable to autofill for '{config.name}', configuration specified invalid "
                f"profile {name} . Number of "
                f"profiles supported by TensorRT engine: {len(signature.profiles)}"
            )
    return max(max_rows(signature.profiles[index]) for index in chosen)


def _add_fields(fields: Any, infos: Mapping[str, TensorInfo], batched: bool) -> None:
    if not fields:
        for info in infos.values():
            _complete(fields.add(name=info.name), info, batched)
        return
    for field in fields:
        if field.name in infos:
            _complete(field, infos[field.name], batched)


def _complete(field: ModelInput | ModelOutput, info: TensorInfo, batched: bool) -> None:
    if field.data_type == 0 and info.datatype in DATATYPES:
        field.data_type = DATATYPES[info.datatype].number  # type: ignore[assignment]  # stubs know the enum's numbers alone
    if not field.dims:
        field.dims.extend(_dims(info, batched))
        if not field.dims:
            # The configuration has no scalars: clients see one element, the engine none.
            field.dims.append(1)
            field.reshape.SetInParent()
    if field.is_shape_tensor and not info.is_shape:
        raise InvalidArgument(f"'{field.name}' is incorrectly specified as a shape tensor.")
    if field.is_non_linear_format_io and info.packing is None:
        raise InvalidArgument(
            f"'{field.name}' uses a linear IO format, but 'is_non_linear_format_io' is "
            "incorrectly set to true in the model "
            "configuration."
        )
    field.is_shape_tensor = info.is_shape
    field.is_non_linear_format_io = info.packing is not None


def _dims(info: TensorInfo, batched: bool) -> Iterable[int]:
    if info.is_shape and info.dims and batched:
        return (info.dims[0] - 1,)  # its first value is the batch size, which the server knows
    return info.dims[1:] if batched and not info.is_shape else info.dims
