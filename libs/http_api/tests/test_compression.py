from __future__ import annotations

import gzip
import zlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tritonpy import InvalidArgument
from tritonpy_http_api.compression import (
    UnsupportedEncoding,
    compress,
    decompress,
    request_encoding,
    response_encoding,
)


@pytest.mark.parametrize(
    ("header", "chosen"),
    [
        (None, ""), (b"", ""), (b"gzip", "gzip"), (b"deflate", "deflate"), (b"identity", ""), (b"*", ""),
        (b"gzip;q=0.5, deflate", "deflate"), (b"deflate,gzip", "deflate"), (b"gzip;q=0", ""), (b"br, gzip", "gzip"),
        (b"gzip;q=abc, deflate;q=0.1", "deflate"), (b" gzip ", ""), (b"identity, gzip", ""), (b",,;q=1", ""),
    ],
)  # fmt: skip
def test_the_encoding_with_the_greatest_weight_is_chosen(header, chosen):
    assert response_encoding(header) == chosen


@pytest.mark.parametrize(
    ("header", "encoding"), [(None, ""), (b"", ""), (b"identity", ""), (b"gzip", "gzip")]
)
def test_known_encodings_of_requests(header, encoding):
    assert request_encoding(header) == encoding


@pytest.mark.parametrize("header", [b"br", b"GZIP", b"gzip, deflate"])
def test_an_unknown_encoding_is_refused(header):
    with pytest.raises(UnsupportedEncoding, match=r"^Unsupported compression type$"):
        request_encoding(header)


@given(st.lists(st.binary()), st.sampled_from(["gzip", "deflate"]))
def test_compression_round_trips(parts, encoding):
    body = compress(parts, encoding)
    assert decompress(body, 1 << 20) == b"".join(parts)


def test_gzip_and_zlib_streams_are_decompressed():
    assert decompress(gzip.compress(b"abc"), 3) == b"abc"
    assert decompress(zlib.compress(b"abc"), 3) == b"abc"
    assert decompress(gzip.compress(b"abc") + b"tail", 3) == b"abc"


def test_a_decompression_bomb_stops_at_the_limit():
    with pytest.raises(
        InvalidArgument,
        match=r"Decompressed data size exceeds the maximum allowed value of 1000 bytes",
    ):
        decompress(zlib.compress(bytes(10_000_000)), 1000)


def test_an_empty_body_is_refused():
    with pytest.raises(InvalidArgument, match=r"^nothing to be decompressed$"):
        decompress(b"", 10)


@given(st.binary(min_size=1, max_size=50))
def test_arbitrary_bytes_are_decompressed_or_refused(body):
    try:
        decompress(body, 1000)
    except InvalidArgument as error:
        assert error.message.startswith("failed to decompress")  # noqa: PT017


def test_a_truncated_stream_is_refused():
    with pytest.raises(InvalidArgument, match=r"ends too early"):
        decompress(gzip.compress(b"abcdefgh")[:-9], 100)
