"""Checks a model configuration against the model's signature, with Triton's texts. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from tritonpy import DATATYPE_OF_NUMBER, DATATYPES, Internal, InvalidArgument
from tritonpy_backend_tf.signature import Signature, TensorInfo

if TYPE_CHECKING:
    from tritonpy_protos.model_config_pb2 import ModelConfig, ModelInput, ModelOutput, ModelSequenceBatching

    Field = ModelInput | ModelOutput


def check(config: ModelConfig, signature: Signature) -> None:
    """Raise InvalidArgument (Internal for a control that the model lacks) at the first thing that does not fit.

    Of a graph without a signature, names and types are checked: it may be run with other shapes than those that it was frozen with.
    """
    controls = list(_controls(config.sequence_batching))
    for name, datatype in controls:
        _check_control(config, signature, name, datatype)
    known = signature.known_inputs
    for field in config.input:
        _known(known, field.name, "input")
    _check_count(config, signature, len(controls))
    for field in config.input:
        _check_input(config, signature, field)
    for each in config.batch_input:
        for name in each.target_name:
            _check_datatype(config, f"batch input '{name}'", each.data_type, _known(known, name, "input"))
    for output in config.output:
        _check_output(config, signature, output)
    _check_states(config, signature)


def _check_count(config: ModelConfig, signature: Signature, controls: int) -> None:
    made = sum(len(each.target_name) for each in config.batch_input)
    given = len(config.input) - sum(field.name in signature.optional for field in config.input)
    expected = given + made + controls + len(config.sequence_batching.state)
    provided = len(signature.inputs)
    if not signature.exact and expected > provided:
        raise _unable(config, f"configuration expects {expected} inputs, model provides at most {provided}")
    if signature.exact and expected != provided:
        raise _unable(config, f"configuration expects {expected} inputs, model provides {provided}")


def _known(infos: Mapping[str, TensorInfo], name: str, what: str) -> TensorInfo:
    info = infos.get(name)
    if info is None:
        raise InvalidArgument(f"unexpected inference {what} '{name}', allowed {what}s are: {', '.join(sorted(infos))}")
    return info


def _check_input(config: ModelConfig, signature: Signature, field: ModelInput) -> None:
    info = _known(signature.known_inputs, field.name, "input")
    if field.optional and field.name not in signature.optional:
        raise _unable(config, f"input '{field.name}' is optional in the configuration, the model cannot do without it")
    if signature.exact and field.allow_ragged_batch:
        _check_ragged(config, field, info)
    elif signature.exact:
        _check_dims(config, field, info, exact=False)
    _check_datatype(config, f"input '{field.name}'", field.data_type, info)


def _check_ragged(config: ModelConfig, field: ModelInput, info: TensorInfo) -> None:
    if info.dims not in {(-1,), None}:
        raise _unable(
            config,
            f"configuration expects model provides input with shape [-1]  for ragged input '{field.name}', "
            f"model provides {_shape(info.dims or ())}",
        )


def _check_output(config: ModelConfig, signature: Signature, field: ModelOutput) -> None:
    info = _known(signature.known_outputs, field.name, "output")
    scattered = any(field.name in each.target_name for each in config.batch_output)
    if signature.exact and not scattered:
        _check_dims(config, field, info, exact=True)
    _check_datatype(config, f"output '{field.name}'", field.data_type, info)


def _check_states(config: ModelConfig, signature: Signature) -> None:
    for state in config.sequence_batching.state:
        given = _known(signature.known_inputs, state.input_name, "input")
        _check_datatype(config, f"input state '{state.input_name}'", state.data_type, given)
        kept = _known(signature.known_outputs, state.output_name, "output")
        _check_datatype(config, f"output state '{state.output_name}'", state.data_type, kept)


def _check_datatype(config: ModelConfig, what: str, number: int, info: TensorInfo) -> None:
    configured = DATATYPE_OF_NUMBER.get(number)
    if configured is None:
        raise InvalidArgument(f"unsupported datatype 'TYPE_INVALID' for {what} for model '{config.name}'")
    if configured.name != info.datatype:
        raise _unable(
            config,
            f"configuration expects datatype {configured.config_name} for {what}, model provides TYPE_{info.datatype}",
        )


def _check_dims(config: ModelConfig, field: Field, info: TensorInfo, exact: bool) -> None:
    """With `exact`, an open dimension of the model must be open in the configuration too."""
    if info.dims is None:
        return
    dims = tuple(field.reshape.shape if field.HasField("reshape") else field.dims)
    batched = config.max_batch_size > 0
    if not info.dims and not batched:
        _check_scalar(config, field.name, dims)
        return
    mismatch = _mismatch(config, field.name, info.dims, dims, exact)
    if mismatch:
        raise InvalidArgument(mismatch)


def _check_scalar(config: ModelConfig, name: str, dims: Sequence[int]) -> None:
    if any(dim != 1 for dim in dims):
        raise _unable(
            config,
            f"scalar tensor '{name}', should only provide 1 in the model configuration when the model doesn't support "
            f"batching. Model configuration provided: {_shape(dims)}.",
        )


def _mismatch(config: ModelConfig, name: str, model: Sequence[int], dims: Sequence[int], exact: bool) -> str:
    """Return what Triton says of a model's shape that does not fit, nothing where it does."""
    where = f"model '{config.name}', tensor '{name}': "
    batched = config.max_batch_size > 0
    if batched and (not model or model[0] != -1):
        return (
            f"{where}for the model to support batching the shape should have at least 1 dimension and the first "
            f"dimension must be -1; but shape expected by the model is {_shape(model)}"
        )
    full = (-1, *dims) if batched else tuple(dims)
    if _compatible(model, full, exact):
        return ""
    complete = (
        f"{len(full)} dimensions (an initial batch dimension because max_batch_size > 0 followed by the explicit "
        f"tensor shape, making complete shape {_shape(full)})"
        if batched
        else f"{len(full)} dimensions (shape {_shape(full)})"
    )
    return f"{where}the model expects {len(model)} dimensions (shape {_shape(model)}) but the model configuration specifies {complete}"


def _compatible(model: Sequence[int], configured: Sequence[int], exact: bool) -> bool:
    return len(model) == len(configured) and all(
        have == want or (have == -1 and not exact) for have, want in zip(model, configured, strict=True)
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
        return DATATYPES["INT32"].number
    if control.fp32_false_true:
        return DATATYPES["FP32"].number
    if control.bool_false_true:
        return DATATYPES["BOOL"].number
    return control.data_type


def _check_control(config: ModelConfig, signature: Signature, name: str, number: int) -> None:
    info = signature.known_inputs.get(name)
    if info is None:
        raise Internal(f"configuration specified sequence control '{name}', but model does not provide that input")
    where = f"sequence control '{name}': "
    if signature.exact and info.dims is not None:
        mismatch = _mismatch(config, name, info.dims, (1,), exact=True)
        if mismatch:
            raise _unable(config, where + mismatch)
    configured = DATATYPE_OF_NUMBER[number]
    if configured.name != info.datatype:
        raise _unable(
            config,
            f"{where}the model expects TYPE_{info.datatype} but the model configuration specifies data-type {configured.config_name}",
        )


def _unable(config: ModelConfig, what: str) -> InvalidArgument:
    return InvalidArgument(f"unable to load model '{config.name}', {what}")


def _shape(dims: Sequence[int]) -> str:
    return f"[{','.join(map(str, dims))}]"
