from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tritonpy import InvalidArgument
from tritonpy.config import (
    MOST_THREADS,
    parameter_bool,
    parameter_bytes,
    parameter_choice,
    parameter_int,
    parameter_threads,
    parse_byte_size,
)


@pytest.mark.parametrize(
    ("text", "value"),
    [("1", True), ("TRUE", True), ("on", True), ("0", False), ("False", False), ("Off", False)],
)
def test_booleans_are_spelled_as_in_triton(text, value):
    assert parameter_bool("k", text) is value


@pytest.mark.parametrize("text", ["", "yes", "2", " true"])
def test_an_invalid_boolean_is_refused_with_the_key_and_the_choices(text):
    with pytest.raises(InvalidArgument) as caught:
        parameter_bool("k", text)
    assert (
        caught.value.message
        == f"parameter 'k': failed to convert '{text}' to boolean (true, on, 1, false, off, 0)"
    )


@given(st.integers(-(1 << 31), (1 << 31) - 1))
def test_a_32_bit_integer_is_accepted(number):
    assert parameter_int("k", str(number)) == number


@pytest.mark.parametrize("text", ["", "one", "1.5", "0x1", "9" * 5000])
def test_an_invalid_integer_is_refused(text):
    with pytest.raises(InvalidArgument) as caught:
        parameter_int("k", text)
    assert (
        caught.value.message
        == f"parameter 'k': failed to convert '{text}' to integral number (such as 4)"
    )


@pytest.mark.parametrize(
    ("text", "bounds", "limit"),
    [
        ("2147483648", {}, "at most 2147483647"),
        ("-1", {"least": 0}, "at least 0"),
        ("3", {"least": 1, "most": 2}, "at most 2"),
    ],
)
def test_an_integer_has_bounds(text, bounds, limit):
    with pytest.raises(InvalidArgument) as caught:
        parameter_int("k", text, **bounds)
    assert caught.value.message == f"parameter 'k' is {text}, it must be {limit}"


@pytest.mark.parametrize(
    ("text", "count"), [("-2", 0), ("0", 0), ("3", 3), (str(MOST_THREADS), MOST_THREADS)]
)
def test_a_thread_count_below_1_is_0(text, count):
    assert parameter_threads("k", text) == count


def test_too_many_threads_are_refused():
    with pytest.raises(
        InvalidArgument, match=f"'k' is {MOST_THREADS + 1}, it must be at most {MOST_THREADS}"
    ):
        parameter_threads("k", str(MOST_THREADS + 1))


@pytest.mark.parametrize(
    ("text", "size"), [("0", 0), ("4294967296", 1 << 32), ("2MiB", 2 << 20), ("1 kB", 1000)]
)
def test_bytes_are_a_number_or_a_size(text, size):
    assert parameter_bytes("k", text) == size


@pytest.mark.parametrize("text", ["", "-1", "big", "1XB"])
def test_an_invalid_number_of_bytes_is_refused(text):
    with pytest.raises(InvalidArgument) as caught:
        parameter_bytes("k", text)
    assert caught.value.message == (
        f"parameter 'k': failed to convert '{text}' to unsigned long long integral number"
        " (bytes, such as 536870912 or 512MiB)"
    )


@pytest.mark.parametrize("text", ["0", "18446744073709551616"])
def test_a_number_of_bytes_has_bounds(text):
    with pytest.raises(InvalidArgument) as caught:
        parameter_bytes("k", text, least=1)
    assert (
        caught.value.message
        == f"parameter 'k' is {text}, it must be a number of bytes of at least 1"
    )


def test_a_choice_ignores_case():
    assert parameter_choice("k", "BF16", ["fp32", "bf16"]) == "bf16"
    with pytest.raises(InvalidArgument) as caught:
        parameter_choice("k", "Fp8", ["fp32", "bf16"])
    assert caught.value.message == "parameter 'k' is 'Fp8', it must be one of fp32, bf16"


@pytest.mark.parametrize(
    ("text", "size"),
    [
        ("64MiB", 64 * 2**20),
        ("64 mib", 64 * 2**20),
        ("1.5GiB", 3 * 2**29),
        ("2MB", 2_000_000),
        ("12", 12),
        ("7B", 7),
    ],
)
def test_units_are_binary_or_decimal_as_written(text, size):
    assert parse_byte_size(text) == size


@pytest.mark.parametrize(
    "text", ["", "MiB", "-1", "64M", "64 MiB!", "1e3", "\N{ARABIC-INDIC DIGIT ONE}MiB"]
)
def test_an_invalid_size_is_refused_with_its_value(text):
    with pytest.raises(ValueError, match="is not a size in bytes"):
        parse_byte_size(text)


@given(st.integers(0, 2**62))
def test_large_sizes_are_exact(size):
    assert parse_byte_size(f"{size}B") == size
    assert parse_byte_size(f"{size}KiB") == size * 1024
