from __future__ import annotations

import struct

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tritonpy.model.string_check import find_string_error, has_matching_strings
from tritonpy_types import Tensor, encode_strings


def tensor(shape, raw):
    return Tensor("s", "BYTES", shape, np.frombuffer(raw, np.uint8))


def wire(*elements):
    return encode_strings(elements).tobytes()


@given(st.lists(st.binary(max_size=5), max_size=8), st.integers(0, 9))
def test_both_checks_agree_about_the_number_of_elements(elements, count):
    found = tensor((count,), wire(*elements))
    assert (
        has_matching_strings(found)
        == (find_string_error(found, "m") is None)
        == (count == len(elements))
    )


@given(st.binary(max_size=40), st.integers(0, 4))
def test_both_checks_agree_about_any_bytes(raw, count):
    found = tensor((count,), raw)
    assert has_matching_strings(found) == (find_string_error(found, "m") is None)


@pytest.mark.parametrize(
    ("shape", "raw", "text", "with_id"),
    [
        (
            (1, 3),
            wire("a", "bb"),
            "expected 3 string elements for inference input 's' for model 'm', got 2",
            True,
        ),
        (
            (1,),
            b"",
            "expected 1 string elements for inference input 's' for model 'm', got 0",
            True,
        ),
        (
            (1, 1),
            wire("a", "bb"),
            "unexpected number of string elements 2 for inference input 's' for model 'm', expecting 1",
            True,
        ),
        (
            (1, 0),
            wire("a"),
            "unexpected number of string elements 1 for inference input 's' for model 'm', expecting 0",
            True,
        ),
        (
            (2,),
            wire("a") + b"\1\0",
            (
                "incomplete string length indicator for inference input 's' for model 'm', expecting 4 bytes but only 2 "
                "bytes available. Please make sure the string length indicator is in one buffer."
            ),
            True,
        ),
        (
            (2,),
            wire("a") + struct.pack("<I", 5) + b"ab",
            "incomplete string data for inference input 's', expecting string of length 5 but only 2 bytes available",
            False,
        ),
    ],
)
def test_elements_that_do_not_fit_are_refused_in_tritons_words(shape, raw, text, with_id):
    assert find_string_error(tensor(shape, raw), "m") == (text, with_id)


def test_the_offsets_are_kept():
    found = tensor((2,), wire("a", "b"))
    assert has_matching_strings(found)
    assert found._offsets == [0, 5, 10]


def test_strings_on_another_device_are_not_checked():
    assert has_matching_strings(Tensor("s", "BYTES", (7,), object(), (2, 0)))
