from __future__ import annotations

from hpack import Decoder

from tritonpy_frontend_grpc.wire.response_headers import OK_TRAILERS, RESPONSE_HEADERS, compressed_headers
from tritonpy_frontend_h2.header_blocks import (
    END,
    NOT_GRPC_BLOCK,
    START,
    refusal_block,
    response_head_block,
    trailer_block,
)


def decoded(block):
    return Decoder().decode(block, raw=True)


def test_a_response_starts_with_status_and_type():
    assert decoded(START) == [(b":status", b"200"), (b"content-type", b"application/grpc")]
    assert decoded(response_head_block(compressed_headers("gzip")))[-1] == (b"grpc-encoding", b"gzip")
    assert response_head_block(RESPONSE_HEADERS) == START


def test_a_response_ends_with_the_status_of_its_call():
    assert trailer_block(OK_TRAILERS) is END
    assert decoded(END) == [(b"grpc-status", b"0")]
    assert decoded(trailer_block([(b"grpc-status", b"5")])) == [(b"grpc-status", b"5")]


def test_a_refusal_is_one_block():
    assert decoded(refusal_block([(b"grpc-status", b"5")])) == [*decoded(START), (b"grpc-status", b"5")]
    assert decoded(NOT_GRPC_BLOCK) == [(b":status", b"415"), (b"accept", b"application/grpc")]


def test_blocks_are_valid_on_every_connection():
    decoder = Decoder()
    for _ in range(3):
        for block in (START, END, NOT_GRPC_BLOCK):
            assert decoder.decode(block, raw=True) == decoded(block)
    assert not decoder.header_table.dynamic_entries
