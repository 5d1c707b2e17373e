from __future__ import annotations

from tritonpy_frontend_h2.http2.encode import encode
from tritonpy_frontend_h2.http2.header_block_cache import HeaderBlockCache

from .raw_client import BLOCK, REQUEST


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
