"""Null requests, which fill the slots of a batch without data."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any, Optional

import numpy as np

from .api.request import InferenceRequest
from .api.response import InferenceResponse
from .api.tensor import Tensor
from .inflight_requests import NULL_REQUEST

Slots = Sequence[Optional[InferenceRequest]]


class NullHost:
    """The host of null requests. It discards everything."""

    def __init__(self, decoupled: bool) -> None:
        self.decoupled = decoupled

    def send(self, request: int, response: InferenceResponse | None, final: bool) -> None:
        """Discard a response."""

    def abandon(self, request: int) -> None:
        """Do nothing."""

    def is_cancelled(self, request: int) -> bool:
        """Return false: a null request is never cancelled."""
        return False

    def trace_context(self, request: int) -> str | None:
        """Return None: a null request is not traced."""
        return None


def fill_slots(
    slots: Slots, added: Sequence[Sequence[Tensor]], host: Any
) -> list[InferenceRequest]:
    """Return the request of each slot in order, with its inputs from `added`.

    Empty slots get null requests. A null request has the first request's inputs, filled with zeros
    or empty strings. It has no ID, sequence or requested outputs.
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
