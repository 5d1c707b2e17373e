"""Errors of the API, and their bodies as OpenAI and as Triton write them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

import msgspec

from tritonpy import Code, TritonError
from tritonpy.frontend import RequestMemoryFull

_STATUS: Mapping[Code, int] = {
    Code.UNKNOWN: 500,
    Code.INTERNAL: 500,
    Code.NOT_FOUND: 404,
    Code.INVALID_ARG: 400,
    Code.UNAVAILABLE: 503,
    Code.UNSUPPORTED: 400,
    Code.ALREADY_EXISTS: 400,
    Code.CANCELLED: 499,
    Code.UNAUTHENTICATED: 401,
    Code.PERMISSION_DENIED: 403,
    Code.RESOURCE_EXHAUSTED: 429,
    Code.CONFLICT: 409,
}
_TYPES = {
    401: "authentication_error",
    403: "permission_error",
    429: "rate_limit_error",
}
STOPPING = "Server is stopping, it has stopped accepting new requests"


class ApiError(Exception):
    """An error that a client gets.

    `param` names the invalid member of the request, `code` is for programs. `details` are the
    problems of a body that has the wrong form, which Triton's frontend answers with status 422.
    """

    def __init__(
        self,
        message: str,
        status: int = 400,
        *,
        param: str | None = None,
        code: str | None = None,
        details: list[dict[str, Any]] | None = None,
        retry_after: str = "",
    ) -> None:
        super().__init__(message)
        self.message = message
        self.status = status
        self.param = param
        self.code = code
        self.details = details
        self.retry_after = retry_after

    @property
    def type(self) -> str:
        """OpenAI's type of the error."""
        if self.status >= 500:
            return "server_error"
        return _TYPES.get(self.status, "invalid_request_error")

    def object(self) -> dict[str, Any]:
        """Return the error object of OpenAI: message, type, param and code."""
        return {
            "message": self.message,
            "type": self.type,
            "param": self.param,
            "code": self.code,
        }


class RestrictedApi(ApiError):
    """A call of a restricted API without its header; both styles have the same body."""


class OversizedBody(ApiError):
    """A body exceeds `max_body_bytes`; both styles have the same body."""

    def __init__(self, size: int, limit: int) -> None:
        super().__init__(
            f"Request size of {size} bytes exceeds the maximum allowed input size of {limit} "
            "bytes. Use --http-max-input-size to increase the limit.",
            413,
            code="content_too_large",
        )


def unknown_model(name: str) -> ApiError:
    """Return the error for a model that does not exist or generates no text."""
    return ApiError(f"Unknown model: {name}", 404, param="model", code="model_not_found")


def unsupported(param: str, reason: str) -> ApiError:
    """Return the error for a member of the request that the model or the server cannot honor."""
    return ApiError(
        f"'{param}' is not supported: {reason}", param=param, code="unsupported_parameter"
    )


def api_error(error: TritonError) -> ApiError:
    """Return the error of the API for an error of the engine."""
    status = 503 if isinstance(error, RequestMemoryFull) else _STATUS[error.code]
    code = "model_not_found" if status == 404 else None
    return ApiError(error.message, status, code=code, retry_after=error.retry_after)


ErrorStyle = Literal["openai", "triton", "anthropic"]


def error_body(error: ApiError, style: ErrorStyle) -> tuple[int, bytes]:
    """Return status and body of an error, in the form of OpenAI, Triton's frontend or Anthropic."""
    if style == "anthropic":
        return error.status, encode(anthropic_error(error))
    if style == "openai":
        return error.status, encode({"error": error.object()})
    if isinstance(error, RestrictedApi | OversizedBody):
        members = {"message": error.message, "type": error.type, "code": error.code}
        return error.status, encode({"error": members})
    if error.details is not None:
        return 422, encode({"detail": error.details})
    # Triton distinguishes errors of the client and of the server only.
    known = {400, 401, 403, 405, 404, 429, 500, 503}
    status = error.status if error.status in known else 400
    if error.code == "model_not_found" and error.param == "model":
        status = 400
    return status, encode({"detail": error.message})


_ANTHROPIC_TYPES = {
    401: "authentication_error",
    403: "permission_error",
    404: "not_found_error",
    413: "request_too_large",
    429: "rate_limit_error",
    503: "overloaded_error",
}


def anthropic_error(error: ApiError) -> dict[str, Any]:
    """Return the body of an error in Anthropic's form."""
    default = "api_error" if error.status >= 500 else "invalid_request_error"
    kind = _ANTHROPIC_TYPES.get(error.status, default)
    return {"type": "error", "error": {"type": kind, "message": error.message}}


def encode(value: Any) -> bytes:
    """Return `value` as JSON. Characters that UTF-8 cannot encode are replaced."""
    try:
        return msgspec.json.encode(value)
    except UnicodeEncodeError:
        return msgspec.json.encode(_replaced(value))


def _replaced(value: Any) -> Any:
    if isinstance(value, str):
        return value.encode(errors="replace").decode()
    if isinstance(value, dict):
        return {_replaced(key): _replaced(each) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [_replaced(each) for each in value]
    return value
