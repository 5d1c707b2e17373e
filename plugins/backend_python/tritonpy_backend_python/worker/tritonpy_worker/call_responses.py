"""Responses to the requests that a model makes, where no model gave them."""

from __future__ import annotations

from .api.errors import ErrorCode, TritonError
from .api.response import InferenceResponse


def failed(message: str, code: ErrorCode = ErrorCode.INTERNAL) -> InferenceResponse:
    """Return the response that is an error."""
    return InferenceResponse.received((), TritonError(message, code), {})


def only(response: InferenceResponse) -> InferenceResponse:
    """Return the one response of a model that is not decoupled: an error where it said nothing."""
    return failed("Unexpected empty response.") if response._parameters is None else response
