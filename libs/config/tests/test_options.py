from __future__ import annotations

import msgspec
import pytest

from tritonpy_config.options import NoOptions, Options
from tritonpy_config.server import InvalidServerConfig, decode_options


class Toy(Options, frozen=True):
    max_size: int = 1


@pytest.mark.parametrize("key", ["max_size", "max-size"])
def test_both_spellings_of_a_key_are_accepted(key: str) -> None:
    assert decode_options(Toy, {key: 5}, "toys.toy") == Toy(max_size=5)


def test_an_unknown_key_is_named_with_its_path() -> None:
    with pytest.raises(InvalidServerConfig, match=r"toys.toy"):
        decode_options(Toy, {"maxsize": 5}, "toys.toy")
    with pytest.raises(InvalidServerConfig):
        decode_options(NoOptions, {"anything": 5}, "toys.toy")


def test_options_are_immutable() -> None:
    with pytest.raises(AttributeError):
        Toy().max_size = 2  # type: ignore[misc]
    assert msgspec.structs.fields(NoOptions) == ()
