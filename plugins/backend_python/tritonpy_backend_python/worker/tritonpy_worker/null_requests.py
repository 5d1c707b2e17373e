"""Requests that stand in the slots of a batch that have no data: a model sees them, so that the others stay in their places."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any, Optional

import numpy as np

from .api.request import InferenceRequest
from .api.response import InferenceResponse
from .api.tensor import Tensor
from .open_requests import NULL_REQUEST

Slots = Sequence[Optional[InferenceRequest]]


class NobodysHost:
    """The host of a null request: whatever is sent for it goes nowhere."""

    def __init__(self, decoupled: bool) -> None:
        self.decoupled = decoupled

    def send(self, request: int, response: InferenceResponse | None, final: bool) -> None:
        """Drop an answer."""

    def abandon(self, request: int) -> None:
        """Miss nothing."""

    def is_cancelled(self, request: int) -> bool:
        """Nobody can have given it up."""
        return False

    def trace_context(self, request: int) -> str | None:
        """Nobody traces it."""
        return None


def filled(slots: Slots, added: Sequence[Sequence[Tensor]], host: Any) -> list[InferenceRequest]:
    """Return a request for each slot, in their order, with its inputs of `added`; where there was none, one without data.

    Such a request has the inputs of the first one, filled with zeros or empty strings, no name, no sequence and no wanted output.
    """
    like = next(request for request in slots if request is not None)
    empty = [_empty(tensor) for tensor in like._inputs]
    requests = [_null(host, empty) if request is None else request for request in slots]
    for request, more in zip(requests, added):
        request._inputs = (*request._inputs, *more)
    return requests


def _null(host: Any, inputs: Sequence[Tensor]) -> InferenceRequest:
    return InferenceRequest.received(host, NULL_REQUEST, "", 0, inputs, (), {}, 0, 0)


def _empty(tensor: Tensor) -> Tensor:
    if tensor._datatype == "BYTES":
        data: Any = np.zeros(4 * prod(tensor._shape), np.uint8)  # a length of zero per element
    else:
        data = np.zeros(tensor._shape, tensor._data.dtype)
    return Tensor.received(tensor._name, tensor._datatype, tensor._shape, data)
