"""Tests of the cache of parsed heads."""

from __future__ import annotations

import pytest

from tritonpy_frontend_http.head_cache import MAX_HEADS, HeadCache

TARGET = ("m", "")
HEAD = b"POST /v2/models/m/infer HTTP/1.1\r\nHost: x\r\nContent-Length: 3\r\n\r\n"
HEADERS = [(b"host", b"x"), (b"content-length", b"3")]


@pytest.fixture
def heads() -> HeadCache:
    heads = HeadCache()
    heads.learn(HEAD + b"abc", TARGET, HEADERS)
    return heads


def test_a_cached_head_matches_any_body_of_its_length(heads: HeadCache) -> None:
    match = heads.find(HEAD + b"xyz")
    assert match is not None
    head, start = match
    assert (head.target, head.headers[b"content-length"], (HEAD + b"xyz")[start:]) == (
        TARGET,
        b"3",
        b"xyz",
    )


@pytest.mark.parametrize(
    "data",
    [HEAD, HEAD + b"ab", HEAD + b"abcd", HEAD + b"abc" + HEAD, b"", b"abc", HEAD[1:] + b"abc"],
)
def test_only_exactly_one_request_is_matched(heads: HeadCache, data: bytes) -> None:
    assert heads.find(data) is None


@pytest.mark.parametrize(
    "more",
    [
        (b"transfer-encoding", b"chunked"),
        (b"expect", b"100-continue"),
        (b"connection", b"close"),
        (b"upgrade", b"websocket"),
        (b"content-length", b"3"),
    ],
)
def test_a_head_that_negotiates_is_not_cached(more: tuple[bytes, bytes]) -> None:
    heads = HeadCache()
    heads.learn(HEAD + b"abc", TARGET, [*HEADERS, more])
    assert heads.find(HEAD + b"abc") is None


@pytest.mark.parametrize("size", [b"4", b"", b"-3", b"3.0", b"\xb2"])
def test_a_wrong_content_length_is_not_cached(size: bytes) -> None:
    heads = HeadCache()
    heads.learn(HEAD + b"abc", TARGET, [(b"content-length", size)])
    assert heads.find(HEAD + b"abc") is None


def test_the_number_of_cached_heads_is_bounded() -> None:
    heads = HeadCache()
    for number in range(3 * MAX_HEADS):
        heads.learn(b"X: %d\r\n\r\nabc" % number, TARGET, HEADERS)
    assert len(heads._heads) <= MAX_HEADS


def test_a_long_head_is_not_cached() -> None:
    heads = HeadCache()
    long = b"X: " + b"y" * 4096 + b"\r\n\r\nabc"
    heads.learn(long, TARGET, HEADERS)
    assert heads.find(long) is None
