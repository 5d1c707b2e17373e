"""Responses to calls that the runtime creates itself, such as errors."""

from __future__ import annotations

from .api.errors import ErrorCode, TritonError
from .api.response import InferenceResponse


def failed(message: str, code: ErrorCode = ErrorCode.INTERNAL) -> InferenceResponse:
    """Return an error response."""
    return InferenceResponse.received((), TritonError(message, code), {})


def only(response: InferenceResponse) -> InferenceResponse:
    """Return the response of a model that is not decoupled, or an error if it is empty."""
    return failed("Unexpected empty response.") if response._parameters is None else response
