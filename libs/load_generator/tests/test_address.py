from __future__ import annotations

import pytest

from tritonpy_load_generator.options import BadUsage
from tritonpy_load_generator.wire.address import Address, http_address

from .metadata import options


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", Address("localhost", 8000)),
        ("host", Address("host", 8000)),
        ("host:1", Address("host", 1)),
        ("[::1]:5", Address("::1", 5)),
        ("http://host/a/", Address("host", 80, False, "/a")),
        ("https://host", Address("host", 443, True)),
        ("https://host:8/x", Address("host", 8, True, "/x")),
    ],
)
def test_addresses_are_parsed(text, expected):
    assert http_address(options(url=text)) == expected


@pytest.mark.parametrize("text", ["ftp://host", "http://", "host:port"])
def test_an_invalid_address_is_rejected(text):
    with pytest.raises(BadUsage, match="-u "):
        http_address(options(url=text))
