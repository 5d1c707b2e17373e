"""InferResponse -> the JSON of a generate call. Pure: knows no transport."""

from __future__ import annotations

from math import prod
from typing import Any, NamedTuple

import msgspec

from tritonpy import InferResponse, Tensor, TritonError
from tritonpy_frontend_http.errors import error_body
from tritonpy_frontend_http.json_tensors import to_json

_SUCCESS = 200
# Triton means to answer with the status of the error. It frees the error before it looks at its code, so that clients only ever saw this.
_FAILURE = 400


class Answer(NamedTuple):
    """An answer as it is sent, and the status that the whole reply has if it is the first."""

    body: bytes
    status: int

    def event(self) -> bytes:
        """Return it as a server-sent event."""
        return b"data: " + self.body + b"\n\n"


NOTHING = Answer(b"", _SUCCESS)
NOT_ONE = error_body(
    "generate expects model to produce exactly 1 response, use generate stream for model that generates various number of responses"
)


def encode_answer(response: InferResponse) -> Answer:
    """Return the answer: `id`, model, response parameters and outputs as members of one object, in alphabetical order.

    An output of one element is that element, any other the flat array of them. Of two members with one name the first of the above wins.
    An error of the model, and an output that JSON cannot carry, become an error body.
    """
    try:
        if response.error is not None:
            raise response.error
        return Answer(msgspec.json.encode(_members(response)), _SUCCESS)
    except TritonError as error:
        return encode_failure(error)


def encode_failure(error: TritonError) -> Answer:
    """Return the answer that tells of an error."""
    return Answer(error_body(error.message), _FAILURE)


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
