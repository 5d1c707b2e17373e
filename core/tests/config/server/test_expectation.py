from __future__ import annotations

import enum
from pathlib import Path
from typing import Annotated, Any, Literal

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tritonpy.api.options import NoOptions
from tritonpy.config.server.expectation import ByteSize, description, expectation, parse_byte_size


class Colour(enum.Enum):
    RED = "red"
    BLUE = "blue"


@pytest.mark.parametrize(
    ("annotation", "words"),
    [
        (int, "an integer"),
        (float | None, "a number"),
        (Annotated[int, msgspec.Meta(gt=0, lt=9)], "an integer, more than 0, less than 9"),
        (Annotated[str, msgspec.Meta(pattern="^a$")], "text, matching ^a$"),
        (ByteSize, 'a size such as 67108864 or "64MiB"'),
        (
            Annotated[ByteSize, msgspec.Meta(gt=0)],
            'a size such as 67108864 or "64MiB", more than 0',
        ),
        (Literal["a", "b"], "one of: a, b"),
        (Colour, "one of: red, blue"),
        (list[int], "a list"),
        (dict[str, int] | bool, "a mapping or true or false"),
        (NoOptions, "an empty mapping"),
        (Path, "a path"),
        (Any, "anything"),
    ],
)
def test_types_are_described(annotation, words):
    assert expectation(annotation) == words


def test_the_description_is_found_after_other_metadata():
    assert description(Annotated[ByteSize, msgspec.Meta(description="How much.")]) == "How much."
    assert description(int) == ""


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
