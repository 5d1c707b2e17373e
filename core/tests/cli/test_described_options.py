from __future__ import annotations

from typing import Annotated

import msgspec

from tritonpy.cli.described_options import described


class Toy(msgspec.Struct):
    key: Annotated[str, msgspec.Meta(description="A secret.")]
    size: Annotated[int, msgspec.Meta(ge=1)] = 10
    names: list[str] = msgspec.field(default_factory=list)


def test_each_option_shows_its_type_its_default_and_what_it_means():
    assert list(described(msgspec.structs.fields(Toy), "  ")) == [
        "  key: text; required",
        "      A secret.",
        "  size: an integer, at least 1; default 10",
        "  names: a list; default empty",
    ]
