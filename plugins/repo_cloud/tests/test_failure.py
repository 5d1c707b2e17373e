from __future__ import annotations

import errno

import pytest

from tritonpy_repo_cloud.failure import Kind, kind_of, text_of


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
        "ClientError", code, response={"Error": {"Code": code}, "ResponseMetadata": {"HTTPStatusCode": status}}
    )


@pytest.mark.parametrize(
    ("error", "kind"),
    [
        (PermissionError("no"), Kind.DENIED),
        (caused(OSError(errno.EINVAL, "bad"), boto("InvalidToken", 400)), Kind.DENIED),
        (caused(OSError(errno.EINVAL, "bad"), boto("TokenRefreshRequired", 400)), Kind.DENIED),
        (named("HttpError", code=401), Kind.DENIED),
        (named("HttpResponseError", status_code=403), Kind.DENIED),
        (OSError("Forbidden: b/bucket/o\nno rights"), Kind.DENIED),
        (named("NoCredentialsError"), Kind.DENIED),
        (named("RefreshError", "('invalid_grant: …')"), Kind.DENIED),
        (FileNotFoundError("x"), Kind.MISSING),
        (named("HttpResponseError", status_code=404), Kind.MISSING),
        (ConnectionResetError(), Kind.AWAY),
        (TimeoutError(), Kind.AWAY),
        (caused(OSError(errno.EIO, "x"), boto("InternalError", 500)), Kind.AWAY),
        (caused(OSError(errno.EBUSY, "x"), boto("SlowDown", 503)), Kind.AWAY),
        (named("HttpError", code="429"), Kind.AWAY),
        (named("IncompleteReadError"), Kind.AWAY),
        (ValueError("an answer that is no JSON"), Kind.AWAY),
        (caused(OSError(errno.EINVAL, "x"), boto("InvalidBucketName", 400)), Kind.BROKEN),
        (TypeError("wrong argument"), Kind.BROKEN),
        (named("ParamValidationError"), Kind.BROKEN),
    ],
)
def test_a_failure_has_a_kind(error, kind):
    assert kind_of(error) is kind


def test_causes_that_go_in_a_circle_end():
    one, two = OSError("1"), OSError("2")
    one.__cause__, two.__cause__ = two, one
    assert kind_of(one) is Kind.AWAY


def test_the_text_is_one_line_with_the_kind_of_error():
    assert text_of(OSError("first\nsecond")) == "OSError: first"
    assert text_of(OSError("all is wrong:\n  a name\n  more")) == "OSError: all is wrong: a name"
    assert text_of(TimeoutError()) == "TimeoutError"
