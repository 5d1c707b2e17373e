"""The check of the elements of a BYTES input."""

from __future__ import annotations

import numpy as np
import pytest

from tritonpy_ipc.string_check import InputError, find_string_error
from tritonpy_types import encode_strings

WORDS = [b"", b"a", b"bcd"]


def test_a_valid_buffer_has_no_error() -> None:
    assert find_string_error(encode_strings(WORDS), 3, "IN", "m") is None
    assert find_string_error(np.zeros(0, np.uint8), 0, "IN", "m") is None


@pytest.mark.parametrize(
    ("data", "count", "message"),
    [
        (
            encode_strings(WORDS),
            4,
            "expected 4 string elements for inference input 'IN' for model 'm', got 3",
        ),
        (
            encode_strings(WORDS),
            2,
            "unexpected number of string elements 3 for inference input 'IN' for model 'm', expecting 2",
        ),
        (
            encode_strings(WORDS)[:-1],
            3,
            "incomplete string data for inference input 'IN', expecting string of length 3",
        ),
        (encode_strings(WORDS)[:10], 3, "expecting 4 bytes but only 1 bytes available"),
    ],
)
def test_errors_have_the_texts_of_triton(data, count: int, message: str) -> None:
    error = find_string_error(data, count, "IN", "m")
    assert error is not None
    assert message in error.text


def test_the_text_for_a_client_begins_with_its_requests_id_where_tritons_does() -> None:
    assert InputError("no").text_for("7") == "[request id: 7] no"
    assert InputError("no").text_for("") == "[request id: <id_unknown>] no"
    assert InputError("no", with_id=False).text_for("7") == "no"
