"""Responses between the server and a model of its own process."""

from __future__ import annotations

from collections.abc import Collection

from tritonpy import NO_PARAMETERS, Code, FailureReason, InferResponse, error_of
from tritonpy import TritonError as ServerError
from tritonpy_backend_python.in_process.tensors import received, sent
from tritonpy_worker.api.errors import ErrorCode, TritonError
from tritonpy_worker.api.response import InferenceResponse
from tritonpy_worker.call_responses import failed


def to_send(response: InferenceResponse, wanted: Collection[str] | None = None, final: bool = True) -> InferResponse:
    """Return a model's response with the `wanted` outputs (None: all). Raises TritonModelException where one cannot be had from its device."""
    parameters = response._parameters or NO_PARAMETERS
    error = response.error()
    if error is not None:
        return InferResponse((), parameters=parameters, error=_error(error), final=final)
    outputs = [sent(tensor) for tensor in response._outputs if wanted is None or tensor.name() in wanted]
    return InferResponse(outputs, parameters=parameters, final=final)


def answered(response: InferResponse) -> InferenceResponse:
    """Return what another model answered, as the model that called it sees it."""
    if response.error is not None:
        return failed(response.error.message, ErrorCode(response.error.code))
    parameters = None if response.empty else response.parameters
    return InferenceResponse.received(tuple(map(received, response.outputs)), None, parameters)


def _error(error: TritonError) -> ServerError:
    code = Code(error.code())
    return error_of(code, error.message(), None if code is Code.CANCELLED else FailureReason.BACKEND)
