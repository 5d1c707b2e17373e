from __future__ import annotations

from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tritonpy import InvalidArgument
from tritonpy_frontend_grpc.version import parse_version


def test_an_empty_text_means_any_version():
    assert parse_version("") == -1


@given(st.integers(0, 2**63 - 1))
def test_a_number_is_parsed(number):
    assert parse_version(str(number)) == number


@pytest.mark.parametrize(
    "text", ["one", "²", " ", "-", ".1", "9" * 19, "9" * 9000, "1\0", "1\0abc"]
)
def test_invalid_text_has_tritons_error_text(text):
    with pytest.raises(InvalidArgument) as refusal:
        parse_version(text)
    assert refusal.value.message == (
        f"failed to get model version from specified version string '{text}' (details: stol), "
        "version should be an integral value > 0"
    )


@pytest.mark.parametrize("text", ["7", "+7", " \t7", "007", "7.5", "7x", "7 8", "7_0"])
def test_text_after_a_number_is_ignored(text):
    assert parse_version(text) == 7


def test_a_negative_number_has_tritons_error_text():
    with pytest.raises(
        InvalidArgument,
        match=r"^invalid model version specified '-3' , version should be an integral value > 0$",
    ):
        parse_version("-3")


@given(st.text())
def test_arbitrary_text_is_parsed_or_refused(text):
    with suppress(InvalidArgument):
        assert parse_version(text) >= -1
