from __future__ import annotations

from typing import Annotated

import msgspec

from tritonpy_config.server.option_descriptions import describe_options


class Toy(msgspec.Struct):
    key: Annotated[str, msgspec.Meta(description="A secret.")]
    size: Annotated[int, msgspec.Meta(ge=1)] = 10
    names: list[str] = msgspec.field(default_factory=list)


def test_each_option_has_type_default_and_description():
    assert list(describe_options(msgspec.structs.fields(Toy), "  ")) == [
        "  key: text; required",
        "      A secret.",
        "  size: an integer, at least 1; default 10",
        "  names: a list; default empty",
    ]
