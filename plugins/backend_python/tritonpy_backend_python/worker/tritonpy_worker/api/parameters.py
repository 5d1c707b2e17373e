"""Parameters of requests and responses: a dictionary on the way in, JSON text on the way to the model."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from .errors import TritonModelException

Parameters = Mapping[str, Any]  # values are bool, int or str, from clients float too


def checked(parameters: Any) -> dict[str, Any]:
    """Return a copy of what a model gave; None means none.

    Raises TritonModelException unless it is a dictionary of text to bool, int or text.
    """
    if parameters is None:
        return {}
    if not isinstance(parameters, dict):
        raise TritonModelException(f"Expect N8pybind114dictE, got {type(parameters)}")
    for key, value in parameters.items():
        if not isinstance(key, str):
            raise TritonModelException(f"Expect parameters keys to have type str, found type {type(key)}")
        if not isinstance(value, (bool, int, str)):
            raise TritonModelException(f"Expect parameters values to have type bool/int/str, found type {type(value)}")
    return dict(parameters)


def as_text(parameters: Parameters) -> str:
    """Return what the model made, as Triton shows it to the model."""
    return json.dumps(parameters)


def as_received_text(parameters: Parameters) -> str:
    """Return what came from the server, as Triton shows it to the model: without spaces, unescaped."""
    return json.dumps(parameters, separators=(",", ":"), ensure_ascii=False)
