from __future__ import annotations

import base64

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tritonpy_frontend_grpc.h2.head import (
    CallHead,
    MalformedCall,
    UnknownCompression,
    is_grpc_type,
    read_metadata,
    timeout_ns,
)

PLAIN = ((b"te", b"trailers"),)
SNAPPY, GZIP = ((b"grpc-encoding", name) for name in (b"snappy", b"gzip"))


@pytest.mark.parametrize(
    ("content_type", "expected"),
    [
        (b"application/grpc", True),
        (b"application/grpc+proto", True),
        (b"application/grpc+json", True),
        (b"application/grpc;charset=utf-8", True),
        (b"Application/gRPC", True),
        (b"application/grpc-web", False),
        (b"application/grpc-web+proto", False),
        (b"application/json", False),
        (b"", False),
    ],
)
def test_grpc_is_recognized_by_its_content_type(content_type, expected):
    assert is_grpc_type(content_type) is expected


def test_the_heads_of_grpc_clients_are_valid():
    CallHead("POST", "/", PLAIN).check()
    CallHead("POST", "/", (*PLAIN, GZIP)).check()


@pytest.mark.parametrize(
    ("method", "headers", "text"),
    [
        ("GET", PLAIN, "Bad method header: GET"),
        ("POST", (), "Missing :te header"),
        ("POST", ((b"te", b"gzip"),), "Bad :te header"),
    ],
)
def test_invalid_heads_get_an_error(method, headers, text):
    with pytest.raises(MalformedCall) as error:
        CallHead(method, "/", headers).check()
    assert error.value.message == text


def test_an_unknown_compression_is_not_supported():
    with pytest.raises(UnknownCompression, match="Compression algorithm 'snappy' not supported"):
        CallHead("POST", "/", (*PLAIN, SNAPPY)).check()


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (b"1H", 3600 * 10**9),
        (b"2M", 120 * 10**9),
        (b"3S", 3 * 10**9),
        (b"4m", 4 * 10**6),
        (b"5u", 5 * 10**3),
        (b"99999999n", 99_999_999),
        (b"0S", 0),
        (b"99999999H", 10**18),
        (b"123456789S", None),
        (b"5", None),
        (b"-5S", None),
        (b"5s", None),
        (b"", None),
        (None, None),
    ],
)
def test_timeouts_are_parsed(value, expected):
    assert timeout_ns({} if value is None else {b"grpc-timeout": value}) == expected


def test_metadata_is_parsed_once():
    head = CallHead("POST", "/", ((b"key", b"value"), (b"te", b"trailers")))
    assert head.metadata() == (("key", "value"),)
    assert head.metadata() is head.metadata()


def test_metadata_excludes_transport_headers():
    own = [
        (b"host", b"h"), (b"te", b"trailers"), (b"content-type", b"application/grpc"), (b"grpc-timeout", b"1S"),
        (b"grpc-encoding", b"gzip"), (b"grpc-accept-encoding", b"gzip"),
    ]  # fmt: skip
    given_headers = [
        *own,
        (b"x-key", b"a"),
        (b"user-agent", b"u"),
        (b"x-key", b"b"),
        (b"x-data-bin", b"AAE"),
    ]
    assert read_metadata(given_headers) == (
        ("x-key", "a"),
        ("user-agent", "u"),
        ("x-key", "b"),
        ("x-data-bin", b"\0\1"),
    )


def test_binary_values_may_be_separated_by_commas():
    assert read_metadata([(b"k-bin", b"AAE=, AgM")]) == (("k-bin", b"\0\1"), ("k-bin", b"\2\3"))


def test_metadata_that_is_not_base64_is_malformed():
    with pytest.raises(MalformedCall, match="not base64"):
        read_metadata([(b"k-bin", b"AAAAA")])


@given(st.binary(), st.booleans())
def test_binary_metadata_is_accepted_with_and_without_padding(value, padded):
    text = base64.b64encode(value)
    assert read_metadata([(b"k-bin", text if padded else text.rstrip(b"="))]) == (("k-bin", value),)


@given(st.binary())
def test_arbitrary_values_are_valid_metadata(value):
    ((_, text),) = read_metadata([(b"key", value)])
    assert isinstance(text, str)
