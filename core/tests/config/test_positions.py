from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tritonpy.config.positions import Position, Positions, child, entry, parent


@pytest.mark.parametrize(
    ("path", "above"),
    [
        ("input[0].dims[1]", "input[0].dims"),
        ("input[0].dims", "input[0]"),
        ("input[0]", "input"),
        ("input", ""),
        ("", ""),
        ('parameters["a.b"].string_value', 'parameters["a.b"]'),
        ('parameters["a[0]"]', "parameters"),
    ],
)
def test_the_parent_is_one_level_up(path: str, above: str) -> None:
    assert parent(path) == above


@given(st.text())
def test_any_map_key_is_one_level(key: str) -> None:
    assert parent(child(entry("parameters", key), "string_value")) == entry("parameters", key)
    assert parent(entry("parameters", key)) == "parameters"


def test_a_numeric_key_is_not_quoted() -> None:
    assert entry("priority_queue_policy", 2) == "priority_queue_policy[2]"


def test_the_nearest_position_is_that_of_the_innermost_known_key() -> None:
    positions = Positions({"input": Position(1, 1), "input[0]": Position(2, 3)})
    assert positions.nearest("input[0].reshape.shape") == (2, 3)
    assert positions.nearest("input[4].name") == (1, 1)
    assert positions.nearest("output[0]") is None
