from __future__ import annotations

import gzip
import zlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tritonpy import InvalidArgument
from tritonpy_frontend_grpc.decompression import COMPRESSED_PREFIXES, decompress
from tritonpy_protos import METHODS


@pytest.mark.parametrize(
    "compressed", [gzip.compress(b"abc"), zlib.compress(b"abc"), zlib.compress(b"abc", 9)]
)
def test_gzip_and_deflate_are_decompressed(compressed):
    assert compressed[:1] in COMPRESSED_PREFIXES
    assert decompress(compressed, 3) == b"abc"


@given(st.binary())
def test_uncompressed_data_is_unchanged_or_refused(raw):
    try:
        assert decompress(raw, 100) == raw or raw[:1] in COMPRESSED_PREFIXES
    except InvalidArgument as error:
        assert error.message.startswith("failed to decompress the request")  # noqa: PT017


def test_no_request_starts_like_a_compressed_message():
    for method in METHODS:
        for field in method.request.DESCRIPTOR.fields:
            assert (field.number << 3 | 2) not in (0x1F, 0x78)
            assert (field.number << 3) not in (0x1F, 0x78)


@pytest.mark.parametrize("compressed", [gzip.compress(bytes(1001)), zlib.compress(bytes(10**7))])
def test_more_than_the_limit_is_refused(compressed):
    with pytest.raises(
        InvalidArgument,
        match="Decompressed data size exceeds the maximum allowed value of 1000 bytes",
    ):
        decompress(compressed, 1000)


@pytest.mark.parametrize(
    "compressed",
    [gzip.compress(b"abcdef" * 9)[:-9], gzip.compress(b"a")[:5], b"\x1f\x8b\x08garbage"],
)
def test_damaged_messages_are_refused(compressed):
    with pytest.raises(InvalidArgument, match="failed to decompress the request"):
        decompress(compressed, 1000)
