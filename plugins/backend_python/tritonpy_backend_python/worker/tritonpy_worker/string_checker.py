"""Validation of large BYTES inputs, by the decoding that the model needs anyway."""

from __future__ import annotations

from math import prod

from .api.errors import TritonModelException
from .api.request import InferenceRequest
from .api.tensor import Tensor
from .frame_sink import FrameSink
from .ipc.string_check import find_string_error


class StringChecker:
    """Validates the requests of one model. Malformed ones are rejected through `sink`."""

    def __init__(self, model_name: str, sink: FrameSink) -> None:
        self._model_name = model_name
        self._sink = sink

    def check(self, request: InferenceRequest) -> bool:
        """Decode the BYTES inputs of `request`.

        On an error reject it with Triton's text and return false.
        """
        for tensor in request._inputs:
            if tensor._datatype == "BYTES" and not _decodes(tensor):
                refusal = find_string_error(
                    tensor._data, prod(tensor._shape), tensor._name, self._model_name
                )
                assert refusal is not None, "bug: decoding and validation of a buffer disagree"  # noqa: S101
                self._sink.refuse(request, refusal.text_for(request._request_id))
                return False
        return True


def _decodes(tensor: Tensor) -> bool:
    try:
        tensor.as_numpy()
    except (TritonModelException, ValueError):
        return False
    return True
