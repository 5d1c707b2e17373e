from __future__ import annotations

import gzip
import tracemalloc
import zlib

import pytest

from tritonpy import InvalidArgument
from tritonpy.frontend import decompressed

DATA = bytes(range(256)) * 4


def unpacked(packed: bytes, limit: int = len(DATA)) -> bytes:
    return decompressed(packed, limit, name="the body", remedy="Ask for more.")


@pytest.mark.parametrize(
    "packed", [gzip.compress(DATA), zlib.compress(DATA), gzip.compress(DATA) + b"tail"]
)
def test_both_formats_are_decompressed_and_trailing_data_is_ignored(packed: bytes) -> None:
    assert unpacked(packed) == DATA


def test_data_above_the_limit_is_refused_with_a_remedy() -> None:
    with pytest.raises(
        InvalidArgument, match=r"maximum allowed value of 1023 bytes\. Ask for more\.$"
    ):
        unpacked(gzip.compress(DATA), 1023)


def test_the_limit_may_be_larger_than_any_data() -> None:
    assert unpacked(gzip.compress(DATA), 2**63 - 1) == DATA


def test_a_decompression_bomb_takes_no_more_memory_than_the_limit() -> None:
    bomb = zlib.compress(bytes(50_000_000), 9)
    tracemalloc.start()
    try:
        with pytest.raises(InvalidArgument):
            unpacked(bomb, 100_000)
        assert tracemalloc.get_traced_memory()[1] < 1_000_000
    finally:
        tracemalloc.stop()


def test_damaged_and_truncated_data_is_rejected_by_name() -> None:
    with pytest.raises(
        InvalidArgument, match=r"^failed to decompress the body: .*incorrect header check"
    ):
        unpacked(b"neither of them")
    with pytest.raises(
        InvalidArgument,
        match=r"^failed to decompress the body: the compressed data ends too early$",
    ):
        unpacked(gzip.compress(DATA)[:-1])
