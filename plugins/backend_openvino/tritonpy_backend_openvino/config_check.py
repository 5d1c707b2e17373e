"""Pure checks of a model configuration against the model's signature, with Triton's error texts."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from tritonpy import DTYPES, InvalidArgument
from tritonpy.config import (
    control_inputs,
    dims_misfit,
    model_dims,
    unable_to_load,
)
from tritonpy_backend_kit.config_check import (
    check_input_count,
    configured_datatype,
    datatype_mismatch,
    find_tensor,
)
from tritonpy_backend_openvino.signature import Signature, TensorInfo, with_aliases

if TYPE_CHECKING:
    from tritonpy_protos.model_config_pb2 import ModelConfig, ModelInput, ModelOutput


def check_inputs(config: ModelConfig, signature: Signature, reshape_inputs: bool) -> None:
    """Raise `InvalidArgument` or `Internal` for the first input that does not match the model.

    With `reshape_inputs`, the model is reshaped to the configured shapes, so they are not checked.
    """
    sequence = config.sequence_batching
    own = [
        *control_inputs(config),
        *[(state.input_name, state.data_type) for state in sequence.state],
    ]
    own += [(name, each.data_type) for each in config.batch_input for name in each.target_name]
    check_input_count(config, len(config.input) + len(own), len(signature.inputs))
    known = with_aliases(signature.inputs)
    for field in config.input:
        info = find_tensor(known, field.name, "input", signature.inputs)
        if field.optional:
            raise unable_to_load(
                config,
                (
                    f"optional input '{field.name}' is not supported, the model has no default "
                    "value for it"
                ),
            )
        _check_input_type(config, field.name, field.data_type, info)
        if not reshape_inputs and not field.allow_ragged_batch:
            _check_dims(config, field, info, exact=False)
    for name, number in own:
        _check_input_type(config, name, number, find_tensor(known, name, "input", signature.inputs))


def check_outputs(config: ModelConfig, signature: Signature) -> None:
    """Raise `InvalidArgument` or `Internal` for the first output that does not match the model."""
    known = with_aliases(signature.outputs)
    placed = {name for each in config.batch_output for name in each.target_name}
    for field in config.output:
        info = find_tensor(known, field.name, "output", signature.outputs)
        _check_output_type(config, field.name, field.data_type, info)
        if field.name not in placed:
            _check_dims(config, field, info, exact=True)
    for state in config.sequence_batching.state:
        info = find_tensor(known, state.output_name, "output", signature.outputs)
        _check_output_type(config, state.output_name, state.data_type, info)


def _check_input_type(config: ModelConfig, name: str, number: int, info: TensorInfo) -> None:
    what = f"input '{name}'"
    configured = configured_datatype(config, what, number)
    if not is_convertible(configured.name, info.datatype):
        raise datatype_mismatch(config, what, configured, info.datatype)


def _check_output_type(config: ModelConfig, name: str, number: int, info: TensorInfo) -> None:
    what = f"output '{name}'"
    configured = configured_datatype(config, what, number)
    if not is_convertible(info.datatype, configured.name):
        raise datatype_mismatch(config, what, configured, info.datatype)


_FLOAT_TYPES = {"BF16", "FP16", "FP32", "FP64"}


def is_convertible(source: str, target: str) -> bool:
    """Return whether OpenVINO may convert `source` to `target`.

    The conversion must preserve every value, or change only the precision of a float.
    """
    if source == target:
        return True
    if "BYTES" in {source, target}:
        return False
    # numpy has no casting rule for BF16; BF16 represents every 8-bit integer exactly
    if "BF16" in {source, target}:
        return target in _FLOAT_TYPES and (
            source in _FLOAT_TYPES or source in {"BOOL", "INT8", "UINT8"}
        )
    return {source, target} <= _FLOAT_TYPES or np.can_cast(DTYPES[source], DTYPES[target], "safe")


def _check_dims(
    config: ModelConfig, field: ModelInput | ModelOutput, info: TensorInfo, exact: bool
) -> None:
    """Check the dimensions of one tensor.

    With `exact`, the batch dimension of a batching model is checked, too, and a fixed model
    dimension must be fixed in `config`.
    """
    if info.dims is None:
        return
    dims = model_dims(field)
    where = f"model '{config.name}', tensor '{field.name}': "
    rows = config.max_batch_size
    if not info.dims and rows:
        raise InvalidArgument(
            f"{where}for the model to support batching the shape should have at least 1 dimension"
        )
    if not info.dims and dims == (1,):  # the configuration has no scalars: clients see one element
        return
    full = (rows, *dims) if rows else dims
    if _compatible(info.dims, full, batched=bool(rows), exact=exact):
        return
    raise dims_misfit(config, field.name, info.dims, full)


def _compatible(
    model: Sequence[int], configured: Sequence[int], batched: bool, exact: bool
) -> bool:
    if len(model) != len(configured):
        return False
    pairs = list(zip(model, configured, strict=True))
    if batched and not exact:
        return all(have in (-1, want) or want == -1 for have, want in pairs[1:])
    return all(have in (-1, want) for have, want in pairs)
