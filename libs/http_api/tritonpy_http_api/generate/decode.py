"""Decoding of the JSON of a generate call into `InferRequest`. Independent of transport and engine.

A member with the name of an input becomes that tensor. Any other member becomes a request
parameter. Members of `parameters` are treated like members of the outer object.
"""

from __future__ import annotations

import difflib
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from tritonpy import (
    InferRequest,
    Internal,
    InvalidArgument,
    ParameterValue,
    Tensor,
    TritonError,
    error_of,
)
from tritonpy.frontend import NO_PARAMETERS, Sink, TensorMetadata
from tritonpy_http_api import json_document as document
from tritonpy_http_api.decode import parameter_value
from tritonpy_http_api.generate.tensor import ByteBudget, read_tensor

_NESTED = "parameters"


class JsonMembers(tuple[tuple[str, Any], ...]):
    """The members of a JSON object in order, duplicates included."""

    __slots__ = ()


def read_members(body: bytes) -> JsonMembers:
    """Return the members of a JSON object.

    Raises Internal, as Triton does, if `body` is not one.
    """
    root = document.parse(body, JsonMembers)
    if not isinstance(root, JsonMembers):
        raise Internal("attempt to get members for non-object")
    return root


def decode_generate(
    members: JsonMembers,
    model: str,
    version: int,
    inputs: Sequence[TensorMetadata],
    sink: Sink,
    limit: int,
    known: frozenset[str] | None = None,
) -> InferRequest:
    """Return the request for a model with these `inputs`. It accepts any number of responses.

    `limit` bounds the total size of the tensors on one level of the document, in bytes. `known` are
    the parameters that the model reads; others are rejected. None accepts all. Raises TritonError
    with Triton's texts.
    """
    mapper = _RequestBuilder(
        InferRequest(model, {}, sink, version, _request_id(members)), inputs, limit
    )
    mapper.add(members, mapper.add_nested)
    if known is not None:
        _refuse_unknown(mapper.request, [given.name for given in inputs], known)
    return mapper.request


def _refuse_unknown(request: InferRequest, inputs: Sequence[str], known: frozenset[str]) -> None:
    """Raise InvalidArgument for a parameter that the model does not read.

    The error suggests the closest valid name.
    """
    for name in request.parameters:
        if name != "id" and name not in known:
            raise InvalidArgument(
                f"unknown parameter '{name}' for model "
                f"'{request.model_name}'{_suggestion(name, inputs, known)}"
            )


def _suggestion(name: str, inputs: Sequence[str], known: frozenset[str]) -> str:
    folded = {candidate.lower(): candidate for candidate in (*sorted(known), *inputs)}
    near = difflib.get_close_matches(name.lower(), list(folded), 1)
    if near:
        return f"; did you mean '{folded[near[0]]}'?"
    read = f"the parameters {', '.join(sorted(known))}" if known else "no parameters"
    return f"; it has the inputs {', '.join(inputs)}, and reads {read}"


def _request_id(members: JsonMembers) -> str:
    given = _first_values(members)
    try:
        return document.as_string(given["id"]) if "id" in given else ""
    except Internal as error:
        raise document.with_prefix("Unable to parse 'id'", error) from None


def _first_values(members: JsonMembers) -> dict[str, Any]:
    return dict(reversed(members))


class _RequestBuilder:
    """Builds one request."""

    def __init__(self, request: InferRequest, inputs: Sequence[TensorMetadata], limit: int) -> None:
        self.request = request
        self._inputs: Mapping[str, TensorMetadata] = {given.name: given for given in inputs}
        self._limit = limit
        self._tensors: dict[str, Tensor] = {}
        self._parameters: dict[str, ParameterValue] = {}
        request.inputs = self._tensors
        request.accepts_decoupled = True

    def add(self, members: JsonMembers, nested: Callable[[Any], None] | None = None) -> None:
        """Add every member.

        `nested` handles the member `parameters`; without it, that is an ordinary member.
        """
        budget, values = ByteBudget(self._limit), _first_values(members)
        for name, _ in members:
            if nested is not None and name == _NESTED:
                nested(values[name])
            elif name in self._inputs:
                self._add_input(self._inputs[name], values[name], budget)
            else:
                self._parameters[name] = parameter_value(name, values[name])
        self.request.parameters = self._parameters or NO_PARAMETERS

    def add_nested(self, value: Any) -> None:
        """Add the members of `parameters`."""
        if _NESTED in self._inputs:
            raise InvalidArgument(
                f"Keyword '{_NESTED}' for nested schema also given as input tensor name"
            )
        if not isinstance(value, JsonMembers):
            raise Internal(
                f"Expected JSON object for keyword: '{_NESTED}': attempt to access JSON "
                "non-object as object"
            )
        try:
            self.add(value)
        except TritonError as error:
            raise error_of(
                error.code, f"Converting keyword: '{_NESTED}': {error.message}"
            ) from None

    def _add_input(self, expected: TensorMetadata, value: Any, budget: ByteBudget) -> None:
        tensor = read_tensor(expected, value, budget)
        if tensor.name in self._tensors:
            raise InvalidArgument(
                f"input '{tensor.name}' already exists in request"
            ).with_request_id(self.request.id)
        self._tensors[tensor.name] = tensor
