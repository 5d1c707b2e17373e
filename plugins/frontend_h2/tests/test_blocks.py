from __future__ import annotations

from hpack import Decoder

from tritonpy_frontend_grpc.wire.replies import OK, PLAIN, head_of
from tritonpy_frontend_h2.blocks import END, NO_GRPC, START, head_block, refusal_block, trailer_block


def decoded(block):
    return Decoder().decode(block, raw=True)


def test_an_answer_begins_with_its_status_and_type():
    assert decoded(START) == [(b":status", b"200"), (b"content-type", b"application/grpc")]
    assert decoded(head_block(head_of("gzip")))[-1] == (b"grpc-encoding", b"gzip")
    assert head_block(PLAIN) == START


def test_an_answer_ends_with_the_status_of_its_call():
    assert trailer_block(OK) is END
    assert decoded(END) == [(b"grpc-status", b"0")]
    assert decoded(trailer_block([(b"grpc-status", b"5")])) == [(b"grpc-status", b"5")]


def test_a_refusal_is_head_and_end_in_one():
    assert decoded(refusal_block([(b"grpc-status", b"5")])) == [*decoded(START), (b"grpc-status", b"5")]
    assert decoded(NO_GRPC) == [(b":status", b"415"), (b"accept", b"application/grpc")]


def test_a_block_means_the_same_on_every_connection_and_at_any_time():
    decoder = Decoder()
    for _ in range(3):
        for block in (START, END, NO_GRPC):
            assert decoder.decode(block, raw=True) == decoded(block)
    assert not decoder.header_table.dynamic_entries
