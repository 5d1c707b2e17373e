"""Batch keys: requests may share a batch if their keys are equal."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from tritonpy_types import InferRequest

if TYPE_CHECKING:
    from tritonpy_protos.model_config_pb2 import ModelConfig

BatchKey = Callable[[InferRequest], object]


def batch_key(config: ModelConfig) -> BatchKey | None:
    """Return the function that computes a request's key, or None if any requests may share a batch.

    The key contains the shapes of inputs with variable dimensions, except with
    `allow_ragged_batch`. It also contains the shapes and values of shape tensors, and which
    optional inputs are present.
    """
    parts: list[BatchKey] = []
    for each in config.input:
        if each.is_shape_tensor:
            parts.append(partial(_content, each.name))
        elif each.optional and -1 in each.dims and not each.allow_ragged_batch:
            parts.append(partial(_optional_shape, each.name))
        elif each.optional:
            parts.append(partial(_presence, each.name))
        elif -1 in each.dims and not each.allow_ragged_batch:
            parts.append(partial(_shape, each.name))
    if len(parts) < 2:
        return parts[0] if parts else None
    return lambda request: [part(request) for part in parts]


def _shape(name: str, request: InferRequest) -> object:
    return request.inputs[name].shape[1:]


def _optional_shape(name: str, request: InferRequest) -> object:
    tensor = request.inputs.get(name)
    return None if tensor is None else tensor.shape[1:]


def _presence(name: str, request: InferRequest) -> object:
    return name in request.inputs


def _content(name: str, request: InferRequest) -> object:
    tensor = request.inputs.get(name)
    if tensor is None:
        return None
    if not isinstance(tensor.data, np.ndarray):
        return object()  # values on a device are not read here: the key equals no other
    return tensor.shape, tensor.data.tobytes()
