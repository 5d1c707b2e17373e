from __future__ import annotations

from urllib.parse import unquote_to_bytes

from hpack import Decoder
from hypothesis import given
from hypothesis import strategies as st

from tritonpy import InvalidArgument, ResourceExhausted
from tritonpy_frontend_grpc.h2.head import UnknownCompression
from tritonpy_frontend_grpc.h2.response_headers import (
    END,
    NOT_GRPC_BLOCK,
    OK_TRAILERS,
    RESPONSE_HEADERS,
    START,
    compressed_headers,
    percent_encoded,
    refusal_block,
    response_head_block,
    status_and_trailers,
    trailer_block,
)


@given(st.text())
def test_percent_encoding_round_trips(text):
    encoded = percent_encoded(text)
    assert all(0x20 <= byte < 0x7F for byte in encoded)
    assert unquote_to_bytes(encoded) == text.encode(errors="replace")


def test_printable_text_is_unchanged():
    text = "model 'x', version 1: \"a\" + (b) & c/d? #e"
    assert percent_encoded(text) == text.encode()
    assert percent_encoded("100% \N{SNOWMAN}\n") == b"100%25 %E2%98%83%0A"


def test_an_error_becomes_status_and_trailers():
    assert status_and_trailers(InvalidArgument("no")) == (
        3,
        [(b"grpc-status", b"3"), (b"grpc-message", b"no")],
    )
    assert status_and_trailers(ResourceExhausted("wait", retry_after_s=7))[1][2:] == [
        (b"retry-after", b"7")
    ]
    assert status_and_trailers(UnknownCompression("no"))[1][2:] == [
        (b"grpc-accept-encoding", b"identity,deflate,gzip")
    ]


def test_a_compressed_response_names_its_encoding():
    assert dict(compressed_headers("gzip")) == {
        b"content-type": b"application/grpc",
        b"grpc-encoding": b"gzip",
    }


def decoded(block):
    return Decoder().decode(block, raw=True)


def test_a_response_starts_with_status_and_type():
    assert decoded(START) == [(b":status", b"200"), (b"content-type", b"application/grpc")]
    assert decoded(response_head_block(compressed_headers("gzip")))[-1] == (
        b"grpc-encoding",
        b"gzip",
    )
    assert response_head_block(RESPONSE_HEADERS) == START


def test_a_response_ends_with_the_status_of_its_call():
    assert trailer_block(OK_TRAILERS) is END
    assert decoded(END) == [(b"grpc-status", b"0")]
    assert decoded(trailer_block([(b"grpc-status", b"5")])) == [(b"grpc-status", b"5")]


def test_a_refusal_is_one_block():
    assert decoded(refusal_block([(b"grpc-status", b"5")])) == [
        *decoded(START),
        (b"grpc-status", b"5"),
    ]
    assert decoded(NOT_GRPC_BLOCK) == [(b":status", b"415"), (b"accept", b"application/grpc")]


def test_blocks_are_valid_on_every_connection():
    decoder = Decoder()
    for _ in range(3):
        for block in (START, END, NOT_GRPC_BLOCK):
            assert decoder.decode(block, raw=True) == decoded(block)
    assert not decoder.header_table.dynamic_entries
