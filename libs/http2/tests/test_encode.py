from __future__ import annotations

import hpack

from tritonpy_http2.encode import encode


def test_blocks_do_not_depend_on_hpack_state():
    headers = [(b":status", b"200"), (b"content-type", b"application/grpc"), (b"x-bin", b"\0\xff")]
    decoder = hpack.Decoder()
    decoder.decode(hpack.Encoder().encode([(b"some", b"field"), (b":status", b"200")]))
    before = list(decoder.header_table.dynamic_entries)
    assert list(map(tuple, decoder.decode(encode(headers), raw=True))) == headers
    assert list(decoder.header_table.dynamic_entries) == before
