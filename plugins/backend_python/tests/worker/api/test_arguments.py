from __future__ import annotations

from collections import deque

import numpy as np
import pytest

from tritonpy_worker.api.arguments import (
    argument_type_error,
    cast_error,
    has_truth_value,
    is_integer,
    is_sequence_of,
    text,
)


def test_the_error_of_a_wrong_argument_has_tritons_text():
    assert str(argument_type_error("__init__", "c.T(a: str)", 1, [2])) == (
        "__init__(): incompatible constructor arguments. The following argument types are supported:\n"
        "    1. c.T(a: str)\n\nInvoked with: 1, [2]"
    )
    assert str(argument_type_error("f", "(a: str, b: int) -> None", "x", b=None, c=3)) == (
        "f(): incompatible function arguments. The following argument types are supported:\n"
        "    1. (a: str, b: int) -> None\n\nInvoked with: 'x'; kwargs: b=None, c=3"
    )
    assert str(argument_type_error("f", "(a: str)", a=1)).endswith("\n\nInvoked with: kwargs: a=1")


def test_text_is_text_or_utf8():
    assert text("ü") == "ü"
    assert text("ü".encode()) == "ü"
    assert text(np.str_("x")) == "x"
    assert [text(each) for each in (None, 5, bytearray(b"x"))] == [None] * 3


@pytest.mark.parametrize("value", [[], [1, 2], (1,), deque([1]), range(3)])
def test_sequences_are_accepted(value):
    assert is_sequence_of(value, int)


@pytest.mark.parametrize("value", [None, "12", b"12", {1}, {1: 2}, iter([1]), 5, [1, "2"], [None]])
def test_other_values_are_not_sequences_of_numbers(value):
    assert not is_sequence_of(value, int)


def test_a_sequence_may_have_several_types():
    assert is_sequence_of([1, None], int, type(None))


def test_whole_numbers_have_a_range():
    assert all(is_integer(each, 0, 8) for each in (0, 255, True, np.uint16(7), np.int64(255)))
    assert not any(is_integer(each, 0, 8) for each in (-1, 256, 1.0, "1", None, np.float32(1)))
    assert is_integer(-(1 << 63), -(1 << 63), 64)
    assert not is_integer(1 << 63, -(1 << 63), 64)


def test_truth_values():
    assert all(has_truth_value(each) for each in (True, False, 0, 1.5, np.bool_(1)))
    assert not any(has_truth_value(each) for each in (None, "True", [1]))


def test_cast_errors_are_runtime_errors():
    assert str(cast_error()).startswith("Unable to cast Python instance to C++ type")
