"""Responses to inference requests."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import msgspec

from tritonpy.errors import TritonError
from tritonpy.types.request import NO_PARAMETERS, InferRequest, ParameterValue
from tritonpy.types.tensor import Tensor


class InferResponse(msgspec.Struct, eq=False):
    """One response to a request. If `error` is set, `outputs` is empty.

    A decoupled model sends any number of responses and marks one `final`. A final response that is
    `empty` has no data and only ends the request. If `refused`, it carries the error that
    `Engine.infer` would have raised; an engine in another process refuses requests this way.
    """

    outputs: Sequence[Tensor]
    model_name: str = ""
    model_version: int = -1
    id: str = ""
    parameters: Mapping[str, ParameterValue] = NO_PARAMETERS
    error: TritonError | None = None
    final: bool = True
    empty: bool = False
    refused: bool = False

    @classmethod
    def failed(cls, request: InferRequest, error: TritonError) -> InferResponse:
        """Return the final response with `error`."""
        return cls((), request.model_name, request.model_version, request.id, error=error)
