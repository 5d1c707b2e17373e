"""Checks of a model configuration against the tensors of a model, with Triton's error texts."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, TypeVar

from tritonpy import Internal, InvalidArgument
from tritonpy.config import DATATYPE_OF_NUMBER, DataType, shape_text, unable_to_load

if TYPE_CHECKING:
    from tritonpy_protos.model_config_pb2 import ModelConfig

Info = TypeVar("Info")


def find_tensor(
    infos: Mapping[str, Info], name: str, kind: str, allowed: Iterable[str] | None = None
) -> Info:
    """Return the tensor `name`, an "input" or "output" (`kind`).

    Raises `InvalidArgument` that lists the `allowed` names, by default those of `infos`.
    """
    info = infos.get(name)
    if info is None:
        names = sorted(infos if allowed is None else allowed)
        raise InvalidArgument(
            f"unexpected inference {kind} '{name}', allowed {kind}s are: {', '.join(names)}"
        )
    return info


def input_count(config: ModelConfig, controls: int, fields: int | None = None) -> int:
    """Return how many inputs of the model `config` provides for, with those of the server.

    `controls` is the number of sequence controls, `fields` that of counted inputs of requests
    (default: all).
    """
    made = sum(len(each.target_name) for each in config.batch_input)
    own = len(config.input) if fields is None else fields
    return own + made + controls + len(config.sequence_batching.state)


def check_input_count(config: ModelConfig, expected: int, provided: int) -> None:
    """Raise Triton's error unless the model has as many inputs as the configuration expects."""
    if expected != provided:
        raise unable_to_load(
            config, f"configuration expects {expected} inputs, model provides {provided}"
        )


def configured_datatype(config: ModelConfig, what: str, number: int) -> DataType:
    """Return the datatype of a number in the configuration. Raises `Internal` for an invalid one.

    `what` is the subject in Triton's text, such as `input 'IN'`.
    """
    configured = DATATYPE_OF_NUMBER.get(number)
    if configured is None:
        raise Internal(f"unsupported datatype TYPE_INVALID for {what} for model '{config.name}'")
    return configured


def datatype_mismatch(
    config: ModelConfig, what: str, configured: DataType, datatype: str
) -> InvalidArgument:
    """Return Triton's error for a tensor whose `datatype` in the model is not the configured."""
    return unable_to_load(
        config,
        f"configuration expects datatype {configured.config_name} for {what}, "
        f"model provides TYPE_{datatype}",
    )


def check_batch_dimension(config: ModelConfig, name: str, dims: Sequence[int]) -> None:
    """Raise `InvalidArgument` if the model batches and `dims` do not begin with a dynamic one."""
    if config.max_batch_size > 0 and (not dims or dims[0] != -1):
        raise InvalidArgument(
            f"model '{config.name}', tensor '{name}': for the model to support batching the shape "
            "should have at least 1 dimension and the first dimension must be -1; but shape "
            f"expected by the model is {shape_text(dims)}"
        )


def check_scalar(config: ModelConfig, name: str, dims: Sequence[int]) -> None:
    """Raise Triton's error for a scalar of the model that is configured with more elements."""
    if any(dim != 1 for dim in dims):
        raise unable_to_load(
            config,
            f"scalar tensor '{name}', should only provide 1 in the model configuration when the "
            "model doesn't support batching. Model configuration provided: "
            f"{shape_text(dims)}.",
        )


def dims_match(model: Sequence[int], configured: Sequence[int], exact: bool) -> bool:
    """Return whether the configured dimensions fit those of the model.

    With `exact`, a dynamic dimension of the model must be dynamic in the configuration, too.
    """
    return len(model) == len(configured) and all(
        have == want or (have == -1 and not exact)
        for have, want in zip(model, configured, strict=True)
    )


def missing_control(name: str) -> Internal:
    """Return Triton's error for a configured sequence control that the model does not have."""
    return Internal(
        f"configuration specified sequence control '{name}', but model does not provide that input"
    )
