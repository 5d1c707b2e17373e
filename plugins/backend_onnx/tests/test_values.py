from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tritonpy import InvalidArgument
from tritonpy_backend_onnx.values import parse_bool, parse_int, parse_size


@given(st.integers())
def test_an_integer_comes_back(number):
    assert parse_int(str(number)) == number


@pytest.mark.parametrize("text", ["", "one", "1.5", "0x1"])
def test_what_is_no_integer_is_refused_by_value(text):
    with pytest.raises(InvalidArgument, match=f"^failed to convert '{text}' to integral number$"):
        parse_int(text)


@pytest.mark.parametrize(
    ("text", "value"), [("1", True), ("TRUE", True), ("on", True), ("0", False), ("False", False), ("Off", False)]
)
def test_booleans_are_spelt_as_in_triton(text, value):
    assert parse_bool(text) is value


def test_what_is_no_boolean_is_refused_by_value():
    with pytest.raises(InvalidArgument, match=r"^failed to convert 'yes' to boolean$"):
        parse_bool("yes")


def test_a_size_comes_back():
    assert parse_size("4294967296") == 1 << 32


@pytest.mark.parametrize("text", ["", "-1", "1.5", "big"])
def test_what_is_no_size_is_refused_by_value(text):
    with pytest.raises(InvalidArgument, match=f"^failed to convert '{text}' to unsigned long long integral number$"):
        parse_size(text)
