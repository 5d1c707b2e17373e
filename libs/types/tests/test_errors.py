from __future__ import annotations

import pytest

from tritonpy_types import errors
from tritonpy_types.errors import (
    Code,
    FailureReason,
    QueueFull,
    QueueTimeout,
    TritonError,
    Unavailable,
    error_of,
)


def test_codes_are_tritons_in_order_followed_by_our_own() -> None:
    assert [code.name for code in Code] == [
        "UNKNOWN", "INTERNAL", "NOT_FOUND", "INVALID_ARG", "UNAVAILABLE", "UNSUPPORTED", "ALREADY_EXISTS", "CANCELLED",
        "UNAUTHENTICATED", "PERMISSION_DENIED", "RESOURCE_EXHAUSTED", "CONFLICT",
    ]  # fmt: skip


@pytest.mark.parametrize("code", list(Code))
def test_every_code_maps_back_to_its_error(code: Code) -> None:
    error = error_of(int(code), "text", FailureReason.BACKEND)
    assert (error.code, error.message, str(error), error.reason) == (
        code,
        "text",
        "text",
        FailureReason.BACKEND,
    )


def test_the_request_id_precedes_the_text() -> None:
    error = QueueFull("Exceeds maximum queue size").with_request_id("7")
    assert isinstance(error, QueueFull)
    assert error.message == "[request id: 7] Exceeds maximum queue size"
    assert error.with_request_id("").message.startswith("[request id: <id_unknown>] ")


def test_a_queue_refusal_counts_as_rejected() -> None:
    assert QueueFull("x").reason is QueueTimeout("x").reason is FailureReason.REJECTED
    assert errors.Cancelled("x").reason is FailureReason.CANCELED
    assert TritonError("x").reason is FailureReason.OTHER
    assert QueueFull("x", FailureReason.OTHER).with_request_id("1").reason is FailureReason.OTHER


def test_startup_errors_are_not_triton_errors() -> None:
    assert not issubclass(errors.StartupError, TritonError)
    assert issubclass(errors.PluginError, errors.StartupError)


def test_the_module_docstring_lists_every_error() -> None:
    kinds = [
        name
        for name, kind in vars(errors).items()
        if isinstance(kind, type) and issubclass(kind, Exception)
    ]
    assert [name for name in kinds if name not in str(errors.__doc__)] == []


def test_unavailable_has_a_retry_time_if_known() -> None:
    assert Unavailable("text").retry_after == ""
    refused = Unavailable("text", retry_after_s=1.2)
    assert refused.retry_after == "2"
    assert refused.with_request_id("7").retry_after == "2"
    assert Unavailable("text", retry_after_s=0).retry_after == "1"
