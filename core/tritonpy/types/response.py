"""An answer to a request."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import msgspec

from tritonpy.errors import TritonError
from tritonpy.types.request import NO_PARAMETERS, InferRequest, ParameterValue
from tritonpy.types.tensor import Tensor


class InferResponse(msgspec.Struct, eq=False):
    """One answer. With `error` set, `outputs` is empty.

    A decoupled model gives any number of answers and marks one `final`; a final answer that is `empty` carries no
    data and only ends the request. One that is `refused` says what `Engine.infer` would have raised, had the engine not been in another process.
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
        """Return the final answer that carries `error`."""
        return cls((), request.model_name, request.model_version, request.id, error=error)
