"""Lookups of tensors and parts of a configuration by name."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .request import InferenceRequest
    from .response import InferenceResponse
    from .tensor import Tensor


def get_input_tensor_by_name(inference_request: InferenceRequest, name: str) -> Tensor | None:
    """Return the input with that name, or None."""
    return _tensor(inference_request.inputs(), name)


def get_output_tensor_by_name(inference_response: InferenceResponse, name: str) -> Tensor | None:
    """Return the output with that name, or None."""
    return _tensor(inference_response.output_tensors(), name)


def get_input_config_by_name(model_config: dict[str, Any], name: str) -> dict[str, Any] | None:
    """Return the configuration of an input, or None."""
    return _properties(model_config.get("input", ()), name)


def get_output_config_by_name(model_config: dict[str, Any], name: str) -> dict[str, Any] | None:
    """Return the configuration of an output, or None."""
    return _properties(model_config.get("output", ()), name)


def using_decoupled_model_transaction_policy(model_config: dict[str, Any]) -> bool:
    """Return true if the configuration makes the model decoupled."""
    if "model_transaction_policy" not in model_config:
        return False
    decoupled: bool = model_config["model_transaction_policy"]["decoupled"]
    return decoupled


def _tensor(tensors: Iterable[Tensor], name: str) -> Tensor | None:
    for tensor in tensors:
        if tensor.name() == name:
            return tensor
    return None


def _properties(entries: Iterable[dict[str, Any]], name: str) -> dict[str, Any] | None:
    for entry in entries:
        if entry["name"] == name:
            return entry
    return None
