"""Detection of outputs that are inputs under another name."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

_MARKER = b"is it you?"


def find_output_aliases(openvino: Any, request: Any, model: Any) -> Mapping[int, int]:
    """Map output indexes of `model`, a compiled model, to the inputs that they return unchanged.

    OpenVINO uses one tensor for both, so setting the output would replace the input. `request` must
    be an unused infer request.
    """
    found: dict[int, int] = {}
    for given, port in enumerate(model.inputs):
        tensor = _sample(openvino, port)
        request.set_input_tensor(given, tensor)
        for made, other in enumerate(model.outputs):
            if other.get_element_type() == port.get_element_type() and _shares_memory(
                request.get_output_tensor(made), tensor
            ):
                found[made] = given
    return found


def _sample(openvino: Any, port: Any) -> Any:
    shape = [max(length, 1) for length in port.get_partial_shape().get_min_shape()]
    kind = port.get_element_type()
    if kind == openvino.Type.string:
        return openvino.Tensor(np.full(shape, _MARKER))
    return openvino.Tensor(kind, openvino.Shape(shape))


def _shares_memory(one: Any, other: Any) -> bool:
    if one.get_element_type().get_type_name() == "string":
        return one.get_size() > 0 and bool(np.all(one.bytes_data == _MARKER))
    return bool(one.data.ctypes.data == other.data.ctypes.data)
