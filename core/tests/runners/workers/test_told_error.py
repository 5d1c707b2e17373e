from __future__ import annotations

import math

import pytest

from tritonpy.errors import Code, FailureReason, NotFound, ResourceExhausted, error_of
from tritonpy.runners.workers.told_error import tell_error, told_error


@pytest.mark.parametrize("code", Code)
def test_every_error_keeps_class_and_text(code):
    told = told_error(tell_error(error_of(code, "text")), FailureReason.BACKEND)
    assert (type(told), told.message, told.reason) == (type(error_of(code, "")), "text", FailureReason.BACKEND)


def test_when_to_come_again_is_kept():
    told = told_error(tell_error(ResourceExhausted("no more", retry_after_s=2.5)))
    assert isinstance(told, ResourceExhausted)
    assert told.retry_after_s == 2.5


def test_an_error_of_other_hands_may_say_nothing_of_it():
    assert tell_error(NotFound("nobody")) == [2, "nobody"]
    assert told_error([10, "no more"]).retry_after == "1"


@pytest.mark.parametrize("seconds", [math.nan, math.inf, -math.inf, -5.0])
def test_a_time_that_is_none_is_not_believed(seconds):
    assert told_error([10, "no more", seconds]).retry_after == "1"
