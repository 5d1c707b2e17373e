"""Parameters of requests and responses: dictionaries from models, JSON text to models."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from .errors import TritonModelException

Parameters = Mapping[str, Any]  # values are bool, int or str; clients also send float


def check_parameters(parameters: Any) -> dict[str, Any]:
    """Return a copy of a model's parameters; None means none.

    Raises `TritonModelException` unless they are a dictionary of str to bool, int or str.
    """
    if parameters is None:
        return {}
    if not isinstance(parameters, dict):
        raise TritonModelException(f"Expect N8pybind114dictE, got {type(parameters)}")
    for key, value in parameters.items():
        if not isinstance(key, str):
            raise TritonModelException(
                f"Expect parameters keys to have type str, found type {type(key)}"
            )
        if not isinstance(value, (bool, int, str)):
            raise TritonModelException(
                f"Expect parameters values to have type bool/int/str, found type {type(value)}"
            )
    return dict(parameters)


def as_text(parameters: Parameters) -> str:
    """Return parameters that the model created, in Triton's JSON format."""
    return json.dumps(parameters)


def as_received_text(parameters: Parameters) -> str:
    """Return parameters that were received, in Triton's JSON format: no spaces, not escaped."""
    return json.dumps(parameters, separators=(",", ":"), ensure_ascii=False)
