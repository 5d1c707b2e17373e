"""Conversion of responses between the server and a model in its process."""

from __future__ import annotations

from collections.abc import Collection

from tritonpy import Code, InferResponse, error_of
from tritonpy import TritonError as ServerError
from tritonpy.frontend import NO_PARAMETERS
from tritonpy.metrics import FailureReason
from tritonpy_backend_python.in_process.tensors import received_tensor, sent_tensor
from tritonpy_worker.api.errors import ErrorCode, TritonError
from tritonpy_worker.api.response import InferenceResponse
from tritonpy_worker.call_responses import failed


def server_response(
    response: InferenceResponse, output_names: Collection[str] | None = None, final: bool = True
) -> InferResponse:
    """Return a model's response with the `output_names` outputs (None: all).

    Raises `TritonModelException` if an output cannot be copied from its device.
    """
    parameters = response._parameters or NO_PARAMETERS
    error = response.error()
    if error is not None:
        return InferResponse((), parameters=parameters, error=_error(error), final=final)
    outputs = [
        sent_tensor(tensor)
        for tensor in response._outputs
        if output_names is None or tensor.name() in output_names
    ]
    return InferResponse(outputs, parameters=parameters, final=final)


def received_response(response: InferResponse) -> InferenceResponse:
    """Return another model's response as the calling model sees it."""
    if response.error is not None:
        return failed(response.error.message, ErrorCode(response.error.code))
    parameters = None if response.empty else response.parameters
    return InferenceResponse.received(
        tuple(map(received_tensor, response.outputs)), None, parameters
    )


def _error(error: TritonError) -> ServerError:
    code = Code(error.code())
    return error_of(
        code, error.message(), None if code is Code.CANCELLED else FailureReason.BACKEND
    )
