from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tritonpy.config.server.byte_size import parse_byte_size


@pytest.mark.parametrize(
    ("text", "size"),
    [("64MiB", 64 * 2**20), ("64 mib", 64 * 2**20), ("1.5GiB", 3 * 2**29), ("2MB", 2_000_000), ("12", 12), ("7B", 7)],
)
def test_units_are_binary_or_decimal_as_written(text, size):
    assert parse_byte_size(text) == size


@pytest.mark.parametrize("text", ["", "MiB", "-1", "64M", "64 MiB!", "1e3", "\N{ARABIC-INDIC DIGIT ONE}MiB"])
def test_an_invalid_size_is_refused_with_its_value(text):
    with pytest.raises(ValueError, match="is not a size in bytes"):
        parse_byte_size(text)


@given(st.integers(0, 2**62))
def test_large_sizes_are_exact(size):
    assert parse_byte_size(f"{size}B") == size
    assert parse_byte_size(f"{size}KiB") == size * 1024
