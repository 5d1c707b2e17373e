from __future__ import annotations

import hpack
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tritonpy_http2 import header_decoder
from tritonpy_http2.codes import COMPRESSION_ERROR, ENHANCE_YOUR_CALM
from tritonpy_http2.encode import encode
from tritonpy_http2.errors import Http2ConnectionError
from tritonpy_http2.header_decoder import HeaderBlockCache, HeaderDecoder

from .raw_client import BLOCK, REQUEST

NAMES = st.sampled_from([b":path", b":method", b"te", b"grpc-timeout", b"x"]) | st.binary(
    min_size=1, max_size=40
)
FIELDS = st.tuples(
    NAMES,
    st.sampled_from([b"", b"POST", b"trailers", b"y" * 3000]) | st.binary(max_size=300),
    st.booleans(),
)
BLOCKS = st.tuples(
    st.lists(FIELDS, max_size=8), st.booleans(), st.sampled_from([None, 0, 100, 4096])
)


@settings(deadline=None)
@given(st.lists(BLOCKS, max_size=8))
def test_blocks_of_another_encoder_are_decoded(blocks):
    encoder, decoder = hpack.Encoder(), HeaderDecoder(1_000_000, 1_000_000, 32 * 1024)
    for fields, huffman, size in blocks:
        if size is not None:
            encoder.header_table_size = size
        block = encoder.encode(fields, huffman=huffman)
        expected = [(name, value) for name, value, _ in fields]
        found = decoder.decode(block)
        assert found.headers == expected
        assert found.size == sum(len(name) + len(value) + 32 for name, value in expected)


@settings(max_examples=300, deadline=None)
@given(st.lists(st.binary(max_size=60), max_size=6))
def test_decoding_matches_another_decoder(blocks):
    other, decoder = hpack.Decoder(1_000_000), HeaderDecoder(1_000_000, 1_000_000, 32 * 1024)
    for block in blocks:
        try:
            expected = list(map(tuple, other.decode(block, raw=True)))
        except hpack.HPACKError:
            with pytest.raises(Http2ConnectionError) as error:
                decoder.decode(block)
            assert error.value.code == COMPRESSION_ERROR
            return
        assert decoder.decode(block).headers == expected


def test_table_changes_are_reported():
    decoder = HeaderDecoder(1000, 10_000, 32 * 1024)
    assert not decoder.decode(b"\x83\x00\x01a\x01b").changed
    assert decoder.decode(b"\x40\x01a\x01b").changed
    assert decoder.decode(b"\xbe").headers == [(b"a", b"b")]
    assert decoder.decode(b"\x20").changed
    with pytest.raises(Http2ConnectionError):
        decoder.decode(b"\xbe")


def test_a_list_above_the_limit_is_truncated_and_updates_the_table():
    decoder = HeaderDecoder(100, 10_000, 32 * 1024)
    found = decoder.decode(b"\x40\x01a\x7f\x01" + b"v" * 128)
    assert found.headers == []
    assert found.size == 161
    assert decoder.decode(b"\xbe").size == 161


def test_a_list_far_above_the_limit_ends_the_connection():
    with pytest.raises(Http2ConnectionError) as error:
        HeaderDecoder(100, 200, 32 * 1024).decode(b"\x83" * 10)
    assert error.value.code == ENHANCE_YOUR_CALM


def test_an_endless_integer_is_invalid():
    with pytest.raises(Http2ConnectionError):
        HeaderDecoder(100, 200, 32 * 1024).decode(b"\xff" + b"\x80" * 10 + b"\x01")


def coded(length, *, indexed):
    """Return a field with `length` bytes of Huffman code for the digit 0 (five zero bits each)."""
    size = bytearray(hpack.hpack.encode_integer(length, 7))
    size[0] |= 0x80
    return (b"\x40" if indexed else b"\x00") + b"\x01a" + bytes(size) + bytes(length)


@pytest.fixture
def decoded(monkeypatch):
    """The lengths of decoded Huffman codes."""
    lengths = []
    decode = header_decoder.decode_huffman
    monkeypatch.setattr(
        header_decoder, "decode_huffman", lambda text: lengths.append(len(text)) or decode(text)
    )
    return lengths


@pytest.mark.parametrize("indexed", [True, False])
def test_a_long_huffman_string_is_not_decoded(decoded, indexed):
    decoder = HeaderDecoder(16_384, 1_000_000, 32 * 1024)
    decoder.decode(b"\x40\x01b\x01c")
    found = decoder.decode(coded(250_000, indexed=indexed))
    assert (found.headers, found.size > 250_000, decoded) == ([], True, [])
    if indexed:  # a field larger than the table empties it
        with pytest.raises(Http2ConnectionError):
            decoder.decode(b"\xbe")


def test_much_huffman_code_in_one_block_ends_the_connection(decoded):
    with pytest.raises(Http2ConnectionError, match="Huffman"):
        HeaderDecoder(16_384, 1_000_000, 32 * 1024).decode(coded(4_000, indexed=True) * 60)
    assert sum(decoded) <= 32 * 1024


def test_a_block_is_decoded_once():
    known = HeaderBlockCache(16_384, 100_000, 32 * 1024)
    assert known.get(BLOCK) is None
    head = known.decode(BLOCK)
    assert (head.headers, head.valid) == (REQUEST, True)
    assert known.get(BLOCK) is head


def test_the_cache_is_cleared_when_the_table_changes():
    known = HeaderBlockCache(16_384, 100_000, 32 * 1024)
    known.decode(b"\x40\x01a\x01b")
    known.decode(b"\xbe")
    assert known.get(b"\xbe").headers == [(b"a", b"b")]
    known.decode(b"\x40\x01a\x01c")
    assert known.get(b"\xbe") is None
    assert known.get(b"\x40\x01a\x01c") is None


def test_the_cache_size_is_bounded():
    known = HeaderBlockCache(16_384, 100_000, 32 * 1024)
    for number in range(1000):
        known.decode(encode([(b"number", b"%d" % number)]))
    kept = [number for number in range(1000) if known.get(encode([(b"number", b"%d" % number)]))]
    assert 0 < len(kept) <= 64
    long = encode([(b"long", b"x" * 5000)])
    known.decode(long)
    assert known.get(long) is None


def test_the_validity_of_a_request_is_cached():
    known = HeaderBlockCache(16_384, 100_000, 32 * 1024)
    block = encode(REQUEST[:2])
    assert not known.decode(block).valid
    assert not known.get(block).valid
