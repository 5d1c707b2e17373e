"""Encoding of `InferResponse` as the JSON of a generate call. Independent of the transport."""

from __future__ import annotations

from math import prod
from typing import Any, NamedTuple

import msgspec

from tritonpy import InferResponse, Tensor, TritonError
from tritonpy_http_api.errors import error_body
from tritonpy_http_api.json_tensors import to_json

_SUCCESS = 200
# Triton frees the error before it reads the code, so that clients always get this status.
_FAILURE = 400


class GenerateResponse(NamedTuple):
    """An encoded response, and the HTTP status of the call if it is the first one."""

    body: bytes
    status: int

    def event(self) -> bytes:
        """Return the response as a server-sent event."""
        return b"data: " + self.body + b"\n\n"


EMPTY_RESPONSE = GenerateResponse(b"", _SUCCESS)
NOT_EXACTLY_ONE = error_body(
    "generate expects model to produce exactly 1 response, use generate stream for model that "
    "generates various number of responses"
)


def encode_response(response: InferResponse) -> GenerateResponse:
    """Return the response as one JSON object with its members in alphabetical order.

    The members are `id`, model, response parameters and outputs. If names collide, the first in
    this list wins. An output of one element becomes a scalar, any other a flat array. A model
    error, or an output that JSON cannot represent, becomes an error body.
    """
    try:
        if response.error is not None:
            raise response.error
        return GenerateResponse(msgspec.json.encode(_members(response)), _SUCCESS)
    except TritonError as error:
        return encode_failure_response(error)


def encode_failure_response(error: TritonError) -> GenerateResponse:
    """Return the response for an error."""
    return GenerateResponse(error_body(error.message), _FAILURE)


def _members(response: InferResponse) -> dict[str, Any]:
    members: dict[str, Any] = {"id": response.id} if response.id else {}
    members |= {"model_name": response.model_name, "model_version": str(response.model_version)}
    for name, value in response.parameters.items():
        members.setdefault(name, value)
    for tensor in response.outputs:
        if tensor.name not in members:
            members[tensor.name] = _plain(tensor)
    return dict(sorted(members.items()))


def _plain(tensor: Tensor) -> Any:
    values = to_json(tensor)
    if prod(tensor.shape) != 1:
        return values
    return values[0] if isinstance(values, list) else msgspec.Raw(bytes(values)[1:-1])
