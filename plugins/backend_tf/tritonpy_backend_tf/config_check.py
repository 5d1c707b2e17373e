"""Pure checks of a model configuration against the model's signature, with Triton's error texts."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from tritonpy import InvalidArgument
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
    datatype_mismatch,
    dims_match,
    find_tensor,
    input_count,
    missing_control,
)
from tritonpy_backend_tf.signature import Signature, TensorInfo

if TYPE_CHECKING:
    from tritonpy_protos.model_config_pb2 import ModelConfig, ModelInput, ModelOutput

    Field = ModelInput | ModelOutput


def check_config(config: ModelConfig, signature: Signature) -> None:
    """Raise an error for the first mismatch between `config` and `signature`.

    The error is `InvalidArgument`, or `Internal` for a sequence control that the model does not
    have. For a graph without a signature, only names and types are checked: it may run with other
    shapes than those that it was frozen with.
    """
    controls = control_inputs(config)
    for name, datatype in controls:
        _check_control(config, signature, name, datatype)
    known = signature.known_inputs
    for field in config.input:
        find_tensor(known, field.name, "input")
    _check_count(config, signature, len(controls))
    for field in config.input:
        _check_input(config, signature, field)
    for each in config.batch_input:
        for name in each.target_name:
            _check_datatype(
                config, f"batch input '{name}'", each.data_type, find_tensor(known, name, "input")
            )
    for output in config.output:
        _check_output(config, signature, output)
    _check_states(config, signature)


def _check_count(config: ModelConfig, signature: Signature, controls: int) -> None:
    given = len(config.input) - sum(field.name in signature.optional for field in config.input)
    expected = input_count(config, controls, given)
    provided = len(signature.inputs)
    if not signature.exact and expected > provided:
        raise unable_to_load(
            config, f"configuration expects {expected} inputs, model provides at most {provided}"
        )
    if signature.exact:
        check_input_count(config, expected, provided)


def _check_input(config: ModelConfig, signature: Signature, field: ModelInput) -> None:
    info = find_tensor(signature.known_inputs, field.name, "input")
    if field.optional and field.name not in signature.optional:
        raise unable_to_load(
            config,
            f"input '{field.name}' is optional in the configuration, but required by the model",
        )
    if signature.exact and field.allow_ragged_batch:
        _check_ragged(config, field, info)
    elif signature.exact:
        _check_dims(config, field, info, exact=False)
    _check_datatype(config, f"input '{field.name}'", field.data_type, info)


def _check_ragged(config: ModelConfig, field: ModelInput, info: TensorInfo) -> None:
    if info.dims not in {(-1,), None}:
        raise unable_to_load(
            config,
            "configuration expects model provides input with shape [-1]  for ragged input "
            f"'{field.name}', "
            f"model provides {shape_text(info.dims or ())}",
        )


def _check_output(config: ModelConfig, signature: Signature, field: ModelOutput) -> None:
    info = find_tensor(signature.known_outputs, field.name, "output")
    scattered = any(field.name in each.target_name for each in config.batch_output)
    if signature.exact and not scattered:
        _check_dims(config, field, info, exact=True)
    _check_datatype(config, f"output '{field.name}'", field.data_type, info)


def _check_states(config: ModelConfig, signature: Signature) -> None:
    for state in config.sequence_batching.state:
        given = find_tensor(signature.known_inputs, state.input_name, "input")
        _check_datatype(config, f"input state '{state.input_name}'", state.data_type, given)
        kept = find_tensor(signature.known_outputs, state.output_name, "output")
        _check_datatype(config, f"output state '{state.output_name}'", state.data_type, kept)


def _check_datatype(config: ModelConfig, what: str, number: int, info: TensorInfo) -> None:
    configured = DATATYPE_OF_NUMBER.get(number)
    if configured is None:
        raise InvalidArgument(
            f"unsupported datatype 'TYPE_INVALID' for {what} for model '{config.name}'"
        )
    if configured.name != info.datatype:
        raise datatype_mismatch(config, what, configured, info.datatype)


def _check_dims(config: ModelConfig, field: Field, info: TensorInfo, exact: bool) -> None:
    """Check dimensions.

    With `exact`, a dynamic model dimension must be dynamic in `config`, too.
    """
    if info.dims is None:
        return
    dims = model_dims(field)
    batched = config.max_batch_size > 0
    if not info.dims and not batched:
        check_scalar(config, field.name, dims)
        return
    _check_shape(config, field.name, info.dims, dims, exact)


def _check_shape(
    config: ModelConfig, name: str, model: Sequence[int], dims: Sequence[int], exact: bool
) -> None:
    check_batch_dimension(config, name, model)
    full = (-1, *dims) if config.max_batch_size > 0 else tuple(dims)
    if not dims_match(model, full, exact):
        raise dims_misfit(config, name, model, full)


def _check_control(config: ModelConfig, signature: Signature, name: str, number: int) -> None:
    info = signature.known_inputs.get(name)
    if info is None:
        raise missing_control(name)
    where = f"sequence control '{name}': "
    if signature.exact and info.dims is not None:
        try:
            _check_shape(config, name, info.dims, (1,), exact=True)
        except InvalidArgument as error:
            raise unable_to_load(config, where + error.message) from error
    configured = DATATYPE_OF_NUMBER[number]
    if configured.name != info.datatype:
        raise unable_to_load(
            config,
            (
                f"{where}the model expects TYPE_{info.datatype} but the model configuration "
                f"specifies data-type {configured.config_name}"
            ),
        )
