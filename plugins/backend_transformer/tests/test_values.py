from __future__ import annotations

import pytest

from tritonpy import InvalidArgument
from tritonpy_backend_transformer.values import choice, real, texts, truth, whole, wholes


@pytest.mark.parametrize(
    ("read", "value", "found"),
    [
        (whole(1), "3", 3),
        (whole(1), 3.0, 3),
        (real(0), "0.5", 0.5),
        (truth, "ON", True),
        (truth, 0, False),
        (texts, "one", ("one",)),
        (texts, ["one", "", "two"], ("one", "two")),
        (wholes, 4, (4,)),
        (wholes, [4, 5], (4, 5)),
        (choice({"a": 1}), "A", 1),
    ],
)
def test_values_are_read(read, value, found):
    assert read("name", value) == found


@pytest.mark.parametrize(
    ("read", "value", "text"),
    [
        (whole(1), 0, "'name' must be a whole number of at least 1, not '0'"),
        (whole(1, 4), 5, "'name' must be a whole number of at least 1 and at most 4, not '5'"),
        (whole(1), 1.5, "'name' must be a whole number of at least 1, not '1.5'"),
        (whole(1), "many", "'name' must be a whole number of at least 1, not 'many'"),
        (whole(1), float("inf"), "'name' must be a whole number of at least 1, not 'inf'"),
        (real(0), -1, "'name' must be a number of at least 0, not '-1'"),
        (real(0), "nan", "'name' must be a number of at least 0, not 'nan'"),
        (real(0, 1, open_below=True), 0, "'name' must be a number of more than 0 and at most 1, not '0'"),
        (truth, "maybe", "'name' must be true or false, not 'maybe'"),
        (texts, 3, "'name' must be a text or a list of texts, not '3'"),
        (choice({"a": 1, "b": 2}), "c", "'name' must be one of a, b, not 'c'"),
    ],
)
def test_what_is_no_value_is_refused(read, value, text):
    with pytest.raises(InvalidArgument) as caught:
        read("name", value)
    assert caught.value.message == text
