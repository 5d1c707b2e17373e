"""Checks and error texts of Triton's Python backend for calls between models."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from tritonpy.errors import Internal, InvalidArgument, TritonError
from tritonpy.types import InferRequest, Tensor

if TYPE_CHECKING:
    from tritonpy_protos.model_config_pb2 import ModelConfig


def check_model_call(call: InferRequest, inputs: Sequence[Tensor], find: Callable[[str, int], ModelConfig]) -> None:
    """Raise the error that a call causes before it becomes a request.

    `inputs` are the tensors that the model passed. `find(name, version)` returns the configuration
    of a ready model or raises a `TritonError`.
    """
    name = call.model_name
    try:
        config = find(name, call.model_version)
    except TritonError:
        raise Internal(f"Failed for execute the inference request. Model '{name}' is not ready.") from None
    if config.model_transaction_policy.decoupled and not call.accepts_decoupled:
        raise Internal(
            f"Model {name} is using the decoupled. The current BLS request call doesn't support models using the decoupled "
            "transaction policy. Please use 'decoupled=True' argument to the 'exec' or 'async_exec' calls for decoupled models.'"
        )
    if len(call.inputs) != len(inputs):
        names = [tensor.name for tensor in inputs]
        twice = next(each for each in names if names.count(each) > 1)
        raise InvalidArgument(f"input '{twice}' already exists in request").with_request_id(call.id)


def refused_model_call(name: str, error: TritonError) -> Internal:
    """Return the error that the calling model gets when its call to model `name` fails."""
    return Internal(f"Model {name} - Error when running inference: {error.message}")
