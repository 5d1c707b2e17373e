from __future__ import annotations

import pytest

from tritonpy_http2.header_rules import are_trailers, is_request

from .raw_client import REQUEST


def test_valid_requests_are_accepted():
    assert is_request(
        [*REQUEST, (b"grpc-timeout", b"1S"), (b"x-bin", b"\xff\x01 "), (b"empty", b"")]
    )
    assert is_request([field for field in REQUEST if field[0] != b":authority"])


@pytest.mark.parametrize("missing", [b":method", b":scheme", b":path"])
def test_required_pseudo_headers_are_checked(missing):
    assert not is_request([field for field in REQUEST if field[0] != missing])


@pytest.mark.parametrize(
    "field",
    [
        (b":path", b"/again"),
        (b":status", b"200"),
        (b":scheme", b"http"),
        (b"Upper", b"case"),
        (b"", b"nameless"),
        (b"with space", b""),
        (b"new\nline", b""),
        (b"value", b"new\nline"),
        (b"value", b"zero\0"),
        (b"value", b"return\r"),
        (b"connection", b"close"),
        (b"keep-alive", b"1"),
        (b"proxy-connection", b"x"),
        (b"transfer-encoding", b"chunked"),
        (b"upgrade", b"websocket"),
    ],
)
def test_forbidden_fields_are_rejected(field):
    assert not is_request([*REQUEST, field])


def test_pseudo_headers_come_first():
    assert not is_request([*REQUEST[1:], REQUEST[0]])


def test_trailers_have_no_pseudo_headers():
    assert are_trailers([(b"checksum", b"1")])
    assert not are_trailers([(b":path", b"/")])
    assert not are_trailers([(b"connection", b"x")])
    assert not are_trailers([(b"value", b"new\nline")])
