from __future__ import annotations

from collections import deque

import numpy as np
import pytest

from tritonpy_worker.api.arguments import is_integer, is_sequence_of, is_truth, mismatch, text, uncastable


def test_a_mismatch_reads_as_tritons():
    assert str(mismatch("__init__", "c.T(a: str)", 1, [2])) == (
        "__init__(): incompatible constructor arguments. The following argument types are supported:\n"
        "    1. c.T(a: str)\n\nInvoked with: 1, [2]"
    )
    assert str(mismatch("f", "(a: str, b: int) -> None", "x", b=None, c=3)) == (
        "f(): incompatible function arguments. The following argument types are supported:\n"
        "    1. (a: str, b: int) -> None\n\nInvoked with: 'x'; kwargs: b=None, c=3"
    )
    assert str(mismatch("f", "(a: str)", a=1)).endswith("\n\nInvoked with: kwargs: a=1")


def test_text_is_text_or_utf8():
    assert text("ü") == "ü"
    assert text("ü".encode()) == "ü"
    assert text(np.str_("x")) == "x"
    assert [text(each) for each in (None, 5, bytearray(b"x"))] == [None] * 3


@pytest.mark.parametrize("value", [[], [1, 2], (1,), deque([1]), range(3)])
def test_sequences_are_taken(value):
    assert is_sequence_of(value, int)


@pytest.mark.parametrize("value", [None, "12", b"12", {1}, {1: 2}, iter([1]), 5, [1, "2"], [None]])
def test_other_things_are_no_sequences_of_numbers(value):
    assert not is_sequence_of(value, int)


def test_a_sequence_may_have_several_kinds():
    assert is_sequence_of([1, None], int, type(None))


def test_whole_numbers_have_a_range():
    assert all(is_integer(each, 0, 8) for each in (0, 255, True, np.uint16(7), np.int64(255)))
    assert not any(is_integer(each, 0, 8) for each in (-1, 256, 1.0, "1", None, np.float32(1)))
    assert is_integer(-(1 << 63), -(1 << 63), 64)
    assert not is_integer(1 << 63, -(1 << 63), 64)


def test_truth_is_what_counts_as_true_or_false():
    assert all(is_truth(each) for each in (True, False, 0, 1.5, np.bool_(1)))
    assert not any(is_truth(each) for each in (None, "True", [1]))


def test_uncastable_values_are_runtime_errors():
    assert str(uncastable()).startswith("Unable to cast Python instance to C++ type")
