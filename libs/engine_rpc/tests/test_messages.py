from __future__ import annotations

import math

import pytest

from tritonpy_engine_rpc.messages import (
    decode_error,
    decode_named_error,
    encode_error,
    encode_named_error,
)
from tritonpy_types.errors import (
    Code,
    FailureReason,
    NotFound,
    QueueFull,
    ResourceExhausted,
    TritonError,
    Unavailable,
    error_of,
)


@pytest.mark.parametrize("code", Code)
def test_every_error_keeps_class_and_text(code):
    reported = decode_error(encode_error(error_of(code, "text")), FailureReason.BACKEND)
    assert (type(reported), reported.message, reported.reason) == (
        type(error_of(code, "")),
        "text",
        FailureReason.BACKEND,
    )


def test_a_retry_delay_is_kept():
    reported = decode_error(encode_error(ResourceExhausted("no more", retry_after_s=2.5)))
    assert isinstance(reported, ResourceExhausted)
    assert reported.retry_after_s == 2.5


def test_an_unavailable_error_may_have_a_retry_delay():
    reported = decode_error(encode_error(Unavailable("not yet", retry_after_s=7)))
    assert (type(reported), reported.retry_after) == (Unavailable, "7")
    assert decode_error(encode_error(Unavailable("not yet"))).retry_after == ""


def test_an_error_without_a_retry_delay_is_decoded():
    assert encode_error(NotFound("nobody")) == [2, "nobody"]
    assert decode_error([10, "no more"]).retry_after == "1"


@pytest.mark.parametrize("seconds", [math.nan, math.inf, -math.inf, -5.0])
def test_an_invalid_retry_delay_is_ignored(seconds):
    assert decode_error([10, "no more", seconds]).retry_after == "1"


def test_a_named_error_keeps_its_class_where_the_core_has_it():
    class Own(QueueFull):
        pass

    for error, kind in (
        (QueueFull("full"), QueueFull),
        (Own("full"), Unavailable),
        (TritonError("full"), TritonError),
    ):
        error.retry_after_s = 2.5
        reported = decode_named_error(encode_named_error(error))
        assert (type(reported), reported.message, reported.retry_after_s) == (kind, "full", 2.5)
