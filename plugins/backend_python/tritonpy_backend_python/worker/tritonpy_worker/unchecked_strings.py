"""Large BYTES inputs come unchecked: decoding them, which the model would do anyway, is the check."""

from __future__ import annotations

from math import prod

from .api.errors import TritonModelException
from .api.request import InferenceRequest
from .api.tensor import Tensor
from .frame_sink import FrameSink
from .ipc.string_walk import string_refusal


class UncheckedStrings:
    """Looks at the requests of one model; the broken ones are refused through `sink` and never reach it."""

    def __init__(self, model_name: str, sink: FrameSink) -> None:
        self._model_name = model_name
        self._sink = sink

    def hold(self, request: InferenceRequest) -> bool:
        """Decode the BYTES inputs of `request`; say no where one was broken, and the request is refused with Triton's text."""
        for tensor in request._inputs:
            if tensor._datatype == "BYTES" and not _decodes(tensor):
                refusal = string_refusal(tensor._data, prod(tensor._shape), tensor._name, self._model_name)
                assert refusal is not None, "a decoder and a walk over one buffer disagree: this is a bug"  # noqa: S101
                self._sink.refuse(request, refusal.said_to(request._request_id))
                return False
        return True


def _decodes(tensor: Tensor) -> bool:
    try:
        tensor.as_numpy()
    except (TritonModelException, ValueError):
        return False
    return True
