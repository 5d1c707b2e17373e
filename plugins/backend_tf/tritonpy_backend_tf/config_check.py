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
        _find_tensor(known, field.name, "input")
    _check_count(config, signature, len(controls))
    for field in config.input:
        _check_input(config, signature, field)
    for each in config.batch_input:
        for name in each.target_name:
            _check_datatype(
                config, f"batch input '{name}'", each.data_type, _find_tensor(known, name, "input")
            )
    for output in config.output:
        _check_output(config, signature, output)
    _check_states(config, signature)


def _check_count(config: ModelConfig, signature: Signature, controls: int) -> None:
    made = sum(len(each.target_name) for each in config.batch_input)
    given = len(config.input) - sum(field.name in signature.optional for field in config.input)
    expected = given + made + controls + len(config.sequence_batching.state)
    provided = len(signature.inputs)
    if not signature.exact and expected > provided:
        raise unable_to_load(
            config, f"configuration expects {expected} inputs, model provides at most {provided}"
        )
    if signature.exact and expected != provided:
        raise unable_to_load(
            config, f"configuration expects {expected} inputs, model provides {provided}"
        )


def _find_tensor(infos: Mapping[str, TensorInfo], name: str, what: str) -> TensorInfo:
    info = infos.get(name)
    if info is None:
        raise InvalidArgument(
            f"unexpected inference {what} '{name}', allowed {what}s are: {', '.join(sorted(infos))}"
        )
    return info


def _check_input(config: ModelConfig, signature: Signature, field: ModelInput) -> None:
    info = _find_tensor(signature.known_inputs, field.name, "input")
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
    info = _find_tensor(signature.known_outputs, field.name, "output")
    scattered = any(field.name in each.target_name for each in config.batch_output)
    if signature.exact and not scattered:
        _check_dims(config, field, info, exact=True)
    _check_datatype(config, f"output '{field.name}'", field.data_type, info)


def _check_states(config: ModelConfig, signature: Signature) -> None:
    for state in config.sequence_batching.state:
        given = _find_tensor(signature.known_inputs, state.input_name, "input")
        _check_datatype(config, f"input state '{state.input_name}'", state.data_type, given)
        kept = _find_tensor(signature.known_outputs, state.output_name, "output")
        _check_datatype(config, f"output state '{state.output_name}'", state.data_type, kept)


def _check_datatype(config: ModelConfig, what: str, number: int, info: TensorInfo) -> None:
    configured = DATATYPE_OF_NUMBER.get(number)
    if configured is None:
        raise InvalidArgument(
            f"unsupported datatype 'TYPE_INVALID' for {what} for model '{config.name}'"
        )
    if configured.name != info.datatype:
        raise unable_to_load(
            config,
            (
                f"configuration expects datatype {configured.config_name} for {what}, "
                f"model provides TYPE_{info.datatype}"
            ),
        )


def _check_dims(config: ModelConfig, field: Field, info: TensorInfo, exact: bool) -> None:
    """Check dimensions.

    With `exact`, a dynamic model dimension must be dynamic in `config`, too.
    """
    if info.dims is None:
        return
    dims = model_dims(field)
    batched = config.max_batch_size > 0
    if not info.dims and not batched:
        _check_scalar(config, field.name, dims)
        return
    mismatch = _mismatch(config, field.name, info.dims, dims, exact)
    if mismatch:
        raise InvalidArgument(mismatch)


def _check_scalar(config: ModelConfig, name: str, dims: Sequence[int]) -> None:
    if any(dim != 1 for dim in dims):
        raise unable_to_load(
            config,
            f"scalar tensor '{name}', should only provide 1 in the model configuration when the "
            "model doesn't support "
            f"batching. Model configuration provided: {shape_text(dims)}.",
        )


def _mismatch(
    config: ModelConfig, name: str, model: Sequence[int], dims: Sequence[int], exact: bool
) -> str:
    """Return Triton's error text for a shape mismatch, or "" if the shapes match."""
    where = f"model '{config.name}', tensor '{name}': "
    batched = config.max_batch_size > 0
    if batched and (not model or model[0] != -1):
        return (
            f"{where}for the model to support batching the shape should have at least 1 "
            "dimension and the first "
            f"dimension must be -1; but shape expected by the model is {shape_text(model)}"
        )
    full = (-1, *dims) if batched else tuple(dims)
    if _compatible(model, full, exact):
        return ""
    return dims_misfit(config, name, model, full).message


def _compatible(model: Sequence[int], configured: Sequence[int], exact: bool) -> bool:
    return len(model) == len(configured) and all(
        have == want or (have == -1 and not exact)
        for have, want in zip(model, configured, strict=True)
    )


def _check_control(config: ModelConfig, signature: Signature, name: str, number: int) -> None:
    info = signature.known_inputs.get(name)
    if info is None:
        raise Internal(
            f"configuration specified sequence control '{name}', but model does not provide that "
            "input"
        )
    where = f"sequence control '{name}': "
    if signature.exact and info.dims is not None:
        mismatch = _mismatch(config, name, info.dims, (1,), exact=True)
        if mismatch:
            raise unable_to_load(config, where + mismatch)
    configured = DATATYPE_OF_NUMBER[number]
    if configured.name != info.datatype:
        raise unable_to_load(
            config,
            (
                f"{where}the model expects TYPE_{info.datatype} but the model configuration "
                f"specifies data-type {configured.config_name}"
            ),
        )
