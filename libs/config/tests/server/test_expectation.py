from __future__ import annotations

import enum
from pathlib import Path
from typing import Annotated, Any, Literal

import msgspec
import pytest

from tritonpy_config.options import NoOptions
from tritonpy_config.server.expectation import ByteSize, description, expectation


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
