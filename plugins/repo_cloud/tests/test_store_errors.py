from __future__ import annotations

import errno

import pytest

from tritonpy_repo_cloud.store_errors import FailureKind, classify_error, error_text


def named(name, text="", **attributes):
    error = type(name, (Exception,), {})(text)
    for key, value in attributes.items():
        setattr(error, key, value)
    return error


def caused(error, cause):
    error.__cause__ = cause
    return error


def boto(code, status):
    return named(
        "ClientError",
        code,
        response={"Error": {"Code": code}, "ResponseMetadata": {"HTTPStatusCode": status}},
    )


@pytest.mark.parametrize(
    ("error", "kind"),
    [
        (PermissionError("no"), FailureKind.DENIED),
        (caused(OSError(errno.EINVAL, "bad"), boto("InvalidToken", 400)), FailureKind.DENIED),
        (
            caused(OSError(errno.EINVAL, "bad"), boto("TokenRefreshRequired", 400)),
            FailureKind.DENIED,
        ),
        (named("HttpError", code=401), FailureKind.DENIED),
        (named("HttpResponseError", status_code=403), FailureKind.DENIED),
        (OSError("Forbidden: b/bucket/o\nno rights"), FailureKind.DENIED),
        (named("NoCredentialsError"), FailureKind.DENIED),
        (named("RefreshError", "('invalid_grant: …')"), FailureKind.DENIED),
        (FileNotFoundError("x"), FailureKind.MISSING),
        (named("HttpResponseError", status_code=404), FailureKind.MISSING),
        (ConnectionResetError(), FailureKind.UNREACHABLE),
        (TimeoutError(), FailureKind.UNREACHABLE),
        (caused(OSError(errno.EIO, "x"), boto("InternalError", 500)), FailureKind.UNREACHABLE),
        (caused(OSError(errno.EBUSY, "x"), boto("SlowDown", 503)), FailureKind.UNREACHABLE),
        (named("HttpError", code="429"), FailureKind.UNREACHABLE),
        (named("IncompleteReadError"), FailureKind.UNREACHABLE),
        (ValueError("an answer that is not valid JSON"), FailureKind.UNREACHABLE),
        (
            caused(OSError(errno.EINVAL, "x"), boto("InvalidBucketName", 400)),
            FailureKind.UNREADABLE,
        ),
        (TypeError("wrong argument"), FailureKind.UNREADABLE),
        (named("ParamValidationError"), FailureKind.UNREADABLE),
    ],
)
def test_a_failure_has_a_kind(error, kind):
    assert classify_error(error) is kind


def test_circular_causes_terminate():
    one, two = OSError("1"), OSError("2")
    one.__cause__, two.__cause__ = two, one
    assert classify_error(one) is FailureKind.UNREACHABLE


def test_the_text_is_one_line_with_the_kind_of_error():
    assert error_text(OSError("first\nsecond")) == "OSError: first"
    assert error_text(OSError("all is wrong:\n  a name\n  more")) == "OSError: all is wrong: a name"
    assert error_text(TimeoutError()) == "TimeoutError"
