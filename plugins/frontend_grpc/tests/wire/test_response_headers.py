from __future__ import annotations

from urllib.parse import unquote_to_bytes

from hypothesis import given
from hypothesis import strategies as st

from tritonpy import InvalidArgument, ResourceExhausted
from tritonpy_frontend_grpc.wire.head import UnknownCompression
from tritonpy_frontend_grpc.wire.response_headers import compressed_headers, percent_encoded, status_and_trailers


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
    assert status_and_trailers(InvalidArgument("no")) == (3, [(b"grpc-status", b"3"), (b"grpc-message", b"no")])
    assert status_and_trailers(ResourceExhausted("wait", retry_after_s=7))[1][2:] == [(b"retry-after", b"7")]
    assert status_and_trailers(UnknownCompression("no"))[1][2:] == [(b"grpc-accept-encoding", b"identity,deflate,gzip")]


def test_a_compressed_response_names_its_encoding():
    assert dict(compressed_headers("gzip")) == {b"content-type": b"application/grpc", b"grpc-encoding": b"gzip"}
