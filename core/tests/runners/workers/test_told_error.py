from __future__ import annotations

import math

import pytest

from tritonpy.errors import (
    Code,
    FailureReason,
    NotFound,
    QueueFull,
    ResourceExhausted,
    TritonError,
    Unavailable,
    error_of,
)
from tritonpy.runners.workers.told_error import tell_error, tell_named_error, told_error, told_named_error


@pytest.mark.parametrize("code", Code)
def test_every_error_keeps_class_and_text(code):
    told = told_error(tell_error(error_of(code, "text")), FailureReason.BACKEND)
    assert (type(told), told.message, told.reason) == (type(error_of(code, "")), "text", FailureReason.BACKEND)


def test_when_to_come_again_is_kept():
    told = told_error(tell_error(ResourceExhausted("no more", retry_after_s=2.5)))
    assert isinstance(told, ResourceExhausted)
    assert told.retry_after_s == 2.5


def test_what_is_unavailable_may_say_when_to_come_again_too():
    told = told_error(tell_error(Unavailable("not yet", retry_after_s=7)))
    assert (type(told), told.retry_after) == (Unavailable, "7")
    assert told_error(tell_error(Unavailable("not yet"))).retry_after == ""


def test_an_error_of_other_hands_may_say_nothing_of_it():
    assert tell_error(NotFound("nobody")) == [2, "nobody"]
    assert told_error([10, "no more"]).retry_after == "1"


@pytest.mark.parametrize("seconds", [math.nan, math.inf, -math.inf, -5.0])
def test_a_time_that_is_none_is_not_believed(seconds):
    assert told_error([10, "no more", seconds]).retry_after == "1"


def test_a_named_error_keeps_its_class_where_the_core_has_it():
    class Own(QueueFull):
        pass

    for error, kind in ((QueueFull("full"), QueueFull), (Own("full"), Unavailable), (TritonError("full"), TritonError)):
        error.retry_after_s = 2.5
        told = told_named_error(tell_named_error(error))
        assert (type(told), told.message, told.retry_after_s) == (kind, "full", 2.5)
