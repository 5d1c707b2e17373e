"""Finds outputs that are inputs under another name."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

_MARK = b"is it you?"


def passing(openvino: Any, request: Any, model: Any) -> Mapping[int, int]:
    """Return, by the numbers of outputs of the compiled `model`, the numbers of the inputs that they hand on unchanged.

    OpenVINO has one tensor for both: to set the output would replace the input. `request` is an infer request that was never used.
    """
    found: dict[int, int] = {}
    for given, port in enumerate(model.inputs):
        tensor = _sample(openvino, port)
        request.set_input_tensor(given, tensor)
        for made, other in enumerate(model.outputs):
            if other.get_element_type() == port.get_element_type() and _is_same(
                request.get_output_tensor(made), tensor
            ):
                found[made] = given
    return found


def _sample(openvino: Any, port: Any) -> Any:
    shape = [max(length, 1) for length in port.get_partial_shape().get_min_shape()]
    kind = port.get_element_type()
    if kind == openvino.Type.string:
        return openvino.Tensor(np.full(shape, _MARK))
    return openvino.Tensor(kind, openvino.Shape(shape))


def _is_same(one: Any, other: Any) -> bool:
    if one.get_element_type().get_type_name() == "string":
        return one.get_size() > 0 and bool(np.all(one.bytes_data == _MARK))
    return bool(one.data.ctypes.data == other.data.ctypes.data)
