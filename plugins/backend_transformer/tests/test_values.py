from __future__ import annotations

import pytest

from tritonpy import InvalidArgument
from tritonpy_backend_transformer.values import (
    boolean,
    choice,
    real_number,
    strings,
    whole_number,
    whole_numbers,
)


@pytest.mark.parametrize(
    ("read", "value", "found"),
    [
        (whole_number(1), "3", 3),
        (whole_number(1), 3.0, 3),
        (real_number(0), "0.5", 0.5),
        (boolean, "ON", True),
        (boolean, 0, False),
        (strings, "one", ("one",)),
        (strings, ["one", "", "two"], ("one", "two")),
        (whole_numbers, 4, (4,)),
        (whole_numbers, [4, 5], (4, 5)),
        (choice({"a": 1}), "A", 1),
    ],
)
def test_values_are_parsed(read, value, found):
    assert read("name", value) == found


@pytest.mark.parametrize(
    ("read", "value", "text"),
    [
        (whole_number(1), 0, "'name' must be a whole number of at least 1, not '0'"),
        (
            whole_number(1, 4),
            5,
            "'name' must be a whole number of at least 1 and at most 4, not '5'",
        ),
        (whole_number(1), 1.5, "'name' must be a whole number of at least 1, not '1.5'"),
        (whole_number(1), "many", "'name' must be a whole number of at least 1, not 'many'"),
        (whole_number(1), float("inf"), "'name' must be a whole number of at least 1, not 'inf'"),
        (real_number(0), -1, "'name' must be a number of at least 0, not '-1'"),
        (real_number(0), "nan", "'name' must be a number of at least 0, not 'nan'"),
        (
            real_number(0, 1, exclusive_minimum=True),
            0,
            "'name' must be a number of more than 0 and at most 1, not '0'",
        ),
        (boolean, "maybe", "'name' must be true or false, not 'maybe'"),
        (strings, 3, "'name' must be a string or a list of strings, not '3'"),
        (choice({"a": 1, "b": 2}), "c", "'name' must be one of a, b, not 'c'"),
    ],
)
def test_invalid_values_are_rejected(read, value, text):
    with pytest.raises(InvalidArgument) as caught:
        read("name", value)
    assert caught.value.message == text
