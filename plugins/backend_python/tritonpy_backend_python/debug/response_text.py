"""Responses as text, as an HTTP client would receive them."""

from __future__ import annotations

import json
from typing import Any

import numpy as np

from tritonpy import InferResponse, Tensor


def response_text(response: InferResponse) -> str:
    """Return a response as JSON. Bytes that are not UTF-8 are escaped with backslashes."""
    if response.error is not None:
        return json.dumps({"error": response.error.message}, ensure_ascii=False)
    body: dict[str, Any] = {
        "model_name": response.model_name,
        "model_version": str(response.model_version),
    }
    if response.id:
        body["id"] = response.id
    if response.parameters:
        body["parameters"] = dict(response.parameters)
    body["outputs"] = [_output(tensor) for tensor in response.outputs]
    return json.dumps(body, ensure_ascii=False)


def _output(tensor: Tensor) -> dict[str, Any]:
    return {
        "name": tensor.name,
        "datatype": tensor.datatype,
        "shape": list(tensor.shape),
        "data": _data(tensor),
    }


def _data(tensor: Tensor) -> list[Any]:
    if tensor.datatype == "BYTES":
        return [each.decode(errors="backslashreplace") for each in tensor.strings()]
    array = tensor.numpy().ravel()
    if tensor.datatype == "BF16":
        array = array.astype(np.float32)
    data: list[Any] = array.tolist()
    return data
