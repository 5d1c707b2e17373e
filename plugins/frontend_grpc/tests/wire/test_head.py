from __future__ import annotations

import base64

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tritonpy_frontend_grpc.wire.head import (
    Head,
    Malformed,
    UnknownEncoding,
    is_grpc_type,
    metadata_of,
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
def test_grpc_is_told_by_its_content_type(content_type, expected):
    assert is_grpc_type(content_type) is expected


def test_the_head_of_every_grpc_client_is_good():
    Head("POST", "/", PLAIN).check()
    Head("POST", "/", (*PLAIN, GZIP)).check()


@pytest.mark.parametrize(
    ("method", "headers", "text"),
    [
        ("GET", PLAIN, "Bad method header: GET"),
        ("POST", (), "Missing :te header"),
        ("POST", ((b"te", b"gzip"),), "Bad :te header"),
    ],
)
def test_what_is_no_grpc_call_is_told_so(method, headers, text):
    with pytest.raises(Malformed) as error:
        Head(method, "/", headers).check()
    assert error.value.message == text


def test_an_unknown_compression_is_not_supported():
    with pytest.raises(UnknownEncoding, match="Compression algorithm 'snappy' not supported"):
        Head("POST", "/", (*PLAIN, SNAPPY)).check()


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
def test_the_time_out_has_a_number_and_a_unit(value, expected):
    assert timeout_ns({} if value is None else {b"grpc-timeout": value}) == expected


def test_metadata_is_read_once():
    head = Head("POST", "/", ((b"key", b"value"), (b"te", b"trailers")))
    assert head.metadata() == (("key", "value"),)
    assert head.metadata() is head.metadata()


def test_metadata_is_what_the_client_added():
    own = [
        (b"host", b"h"), (b"te", b"trailers"), (b"content-type", b"application/grpc"), (b"grpc-timeout", b"1S"),
        (b"grpc-encoding", b"gzip"), (b"grpc-accept-encoding", b"gzip"),
    ]  # fmt: skip
    given_headers = [*own, (b"x-key", b"a"), (b"user-agent", b"u"), (b"x-key", b"b"), (b"x-data-bin", b"AAE")]
    assert metadata_of(given_headers) == (("x-key", "a"), ("user-agent", "u"), ("x-key", "b"), ("x-data-bin", b"\0\1"))


def test_several_binary_values_may_be_joined_with_commas():
    assert metadata_of([(b"k-bin", b"AAE=, AgM")]) == (("k-bin", b"\0\1"), ("k-bin", b"\2\3"))


def test_metadata_that_is_not_base64_is_malformed():
    with pytest.raises(Malformed, match="not base64"):
        metadata_of([(b"k-bin", b"AAAAA")])


@given(st.binary(), st.booleans())
def test_binary_metadata_arrives_with_padding_and_without(value, padded):
    text = base64.b64encode(value)
    assert metadata_of([(b"k-bin", text if padded else text.rstrip(b"="))]) == (("k-bin", value),)


@given(st.binary())
def test_no_text_upsets_metadata(value):
    ((_, text),) = metadata_of([(b"key", value)])
    assert isinstance(text, str)
