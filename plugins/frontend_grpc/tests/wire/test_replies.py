from __future__ import annotations

from urllib.parse import unquote_to_bytes

from hypothesis import given
from hypothesis import strategies as st

from tritonpy import InvalidArgument, ResourceExhausted
from tritonpy_frontend_grpc.wire.head import UnknownEncoding
from tritonpy_frontend_grpc.wire.replies import failed, head_of, percent_encoded


@given(st.text())
def test_a_message_arrives_whatever_it_says(text):
    encoded = percent_encoded(text)
    assert all(0x20 <= byte < 0x7F for byte in encoded)
    assert unquote_to_bytes(encoded) == text.encode(errors="replace")


def test_printable_text_stays_as_it_is():
    text = "model 'x', version 1: \"a\" + (b) & c/d? #e"
    assert percent_encoded(text) == text.encode()
    assert percent_encoded("100% \N{SNOWMAN}\n") == b"100%25 %E2%98%83%0A"


def test_an_error_is_its_number_its_text_and_its_trailers():
    assert failed(InvalidArgument("no")) == (3, [(b"grpc-status", b"3"), (b"grpc-message", b"no")])
    assert failed(ResourceExhausted("wait", retry_after_s=7))[1][2:] == [(b"retry-after", b"7")]
    assert failed(UnknownEncoding("no"))[1][2:] == [(b"grpc-accept-encoding", b"identity,deflate,gzip")]


def test_a_compressed_answer_says_how():
    assert dict(head_of("gzip")) == {b"content-type": b"application/grpc", b"grpc-encoding": b"gzip"}
