"""What Triton's Python backend says of a request that one model makes of another, wherever the calling model runs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from tritonpy.errors import Internal, InvalidArgument, TritonError
from tritonpy.types import InferRequest, Tensor

if TYPE_CHECKING:
    from tritonpy_protos.model_config_pb2 import ModelConfig


def check_model_call(call: InferRequest, inputs: Sequence[Tensor], find: Callable[[str, int], ModelConfig]) -> None:
    """Raise what a call is refused with before it becomes a request; `inputs` are the tensors as the model gave them.

    `find(name, version)` returns the configuration of a model that serves, or raises a TritonError.
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
    """Return the error that a model gets whose call of the model `name` was refused with `error`."""
    return Internal(f"Model {name} - Error when running inference: {error.message}")
