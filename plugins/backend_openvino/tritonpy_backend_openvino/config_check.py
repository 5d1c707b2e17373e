"""Pure checks of a model configuration against the model's signature, with Triton's error texts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from tritonpy import DTYPES, Internal, InvalidArgument
from tritonpy.config import (
    DATATYPE_OF_NUMBER,
    control_inputs,
    dims_misfit,
    model_dims,
    unable_to_load,
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
    count = len(config.input) + len(own)
    if count != len(signature.inputs):
        raise unable_to_load(
            config, f"configuration expects {count} inputs, model provides {len(signature.inputs)}"
        )
    known = with_aliases(signature.inputs)
    for field in config.input:
        info = _known("input", known, signature.inputs, field.name)
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
        _check_input_type(config, name, number, _known("input", known, signature.inputs, name))


def check_outputs(config: ModelConfig, signature: Signature) -> None:
    """Raise `InvalidArgument` or `Internal` for the first output that does not match the model."""
    known = with_aliases(signature.outputs)
    placed = {name for each in config.batch_output for name in each.target_name}
    for field in config.output:
        info = _known("output", known, signature.outputs, field.name)
        _check_output_type(config, field.name, field.data_type, info)
        if field.name not in placed:
            _check_dims(config, field, info, exact=True)
    for state in config.sequence_batching.state:
        info = _known("output", known, signature.outputs, state.output_name)
        _check_output_type(config, state.output_name, state.data_type, info)


def _known(
    kind: str, known: Mapping[str, TensorInfo], infos: Mapping[str, TensorInfo], name: str
) -> TensorInfo:
    info = known.get(name)
    if info is None:
        raise InvalidArgument(
            f"unexpected inference {kind} '{name}', allowed {kind}s are: {', '.join(sorted(infos))}"
        )
    return info


def _check_input_type(config: ModelConfig, name: str, number: int, info: TensorInfo) -> None:
    configured = _datatype(config, f"input '{name}'", number)
    if not is_convertible(configured, info.datatype):
        raise _datatype_mismatch(config, f"input '{name}'", number, info)


def _check_output_type(config: ModelConfig, name: str, number: int, info: TensorInfo) -> None:
    configured = _datatype(config, f"output '{name}'", number)
    if not is_convertible(info.datatype, configured):
        raise _datatype_mismatch(config, f"output '{name}'", number, info)


def _datatype(config: ModelConfig, what: str, number: int) -> str:
    configured = DATATYPE_OF_NUMBER.get(number)
    if configured is None:
        raise Internal(f"unsupported datatype TYPE_INVALID for {what} for model '{config.name}'")
    return configured.name


def _datatype_mismatch(
    config: ModelConfig, what: str, number: int, info: TensorInfo
) -> InvalidArgument:
    return unable_to_load(
        config,
        f"configuration expects datatype {DATATYPE_OF_NUMBER[number].config_name} for {what}, "
        f"model provides TYPE_{info.datatype}",
    )


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
