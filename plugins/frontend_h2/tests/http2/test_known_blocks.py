from __future__ import annotations

from tritonpy_frontend_h2.http2.encode import encode
from tritonpy_frontend_h2.http2.known_blocks import KnownBlocks

from .talk import BLOCK, REQUEST


def test_a_block_is_decoded_once():
    known = KnownBlocks(16_384, 100_000, 32 * 1024)
    assert known.get(BLOCK) is None
    head = known.decode(BLOCK)
    assert (head.headers, head.valid) == (REQUEST, True)
    assert known.get(BLOCK) is head


def test_blocks_are_forgotten_when_what_they_refer_to_changes():
    known = KnownBlocks(16_384, 100_000, 32 * 1024)
    known.decode(b"\x40\x01a\x01b")
    known.decode(b"\xbe")
    assert known.get(b"\xbe").headers == [(b"a", b"b")]
    known.decode(b"\x40\x01a\x01c")
    assert known.get(b"\xbe") is None
    assert known.get(b"\x40\x01a\x01c") is None


def test_many_or_long_blocks_are_not_kept():
    known = KnownBlocks(16_384, 100_000, 32 * 1024)
    for number in range(1000):
        known.decode(encode([(b"number", b"%d" % number)]))
    kept = [number for number in range(1000) if known.get(encode([(b"number", b"%d" % number)]))]
    assert 0 < len(kept) <= 64
    long = encode([(b"long", b"x" * 5000)])
    known.decode(long)
    assert known.get(long) is None


def test_whether_a_list_is_a_request_is_known_too():
    known = KnownBlocks(16_384, 100_000, 32 * 1024)
    block = encode(REQUEST[:2])
    assert not known.decode(block).valid
    assert not known.get(block).valid
