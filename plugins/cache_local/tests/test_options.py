from __future__ import annotations

import pytest

from tritonpy_cache_local.options import SMALLEST, LocalCacheOptions
from tritonpy_config.server import InvalidServerConfig, decode_options


def decoded(raw):
    return decode_options(LocalCacheOptions, raw, "cache.local")


@pytest.mark.parametrize(
    ("size", "found"),
    [(1048576, 2**20), ("1048576", 2**20), ("64MiB", 2**26), ("200", 200), (SMALLEST, SMALLEST)],
)
def test_a_size_is_a_number_of_bytes_or_has_a_unit(size, found):
    assert decoded({"size": size}).size == found


@pytest.mark.parametrize("raw", [{}, {"size": 0}, None])
def test_a_size_is_required(raw):
    with pytest.raises(
        InvalidServerConfig,
        match="Failed to initialize LocalCache: config didn't contain a valid 'size' field",
    ):
        decoded(raw)


def test_a_size_below_the_minimum_is_rejected():
    with pytest.raises(
        InvalidServerConfig,
        match=r"Failed to initialize LocalCache: Could not initialize buffer .*'size' must be at least 192 bytes; got 191",
    ):
        decoded({"size": 191})


@pytest.mark.parametrize("size", ["abc", -5, "1.5.2MiB", None])
def test_an_invalid_size_is_rejected(size):
    with pytest.raises(InvalidServerConfig, match="size"):
        decoded({"size": size})
