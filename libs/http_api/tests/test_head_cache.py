"""Tests of the cache of parsed heads."""

from __future__ import annotations

import pytest

from tritonpy_http_api.head_cache import MAX_HEADS, MAX_LINES, HeadCache

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
        lines = b"POST /%d HTTP/1.1\r\nA: %d\r\nContent-Length: 3" % (number, number)
        headers = [(b"a", b"%d" % number), (b"content-length", b"3")]
        heads.learn(lines + b"\r\n\r\nabc", TARGET, headers)
    assert len(heads._heads) <= MAX_HEADS
    assert len(heads._targets) <= MAX_HEADS
    assert len(heads._lines) <= MAX_LINES + len(HEADERS)


def test_a_long_head_is_not_cached() -> None:
    heads = HeadCache()
    long = b"POST / HTTP/1.1\r\nX: " + b"y" * 4096 + b"\r\n\r\nabc"
    heads.learn(long, TARGET, HEADERS)
    assert heads.find(long) is None


TRACED = (
    b"POST /v2/models/m/infer HTTP/1.1\r\nHost: x\r\nTraceparent: 00-%b\r\n"
    b"Content-Length: %d\r\n\r\n%b"
)


def learned() -> HeadCache:
    heads = HeadCache()
    headers = [(b"host", b"x"), (b"traceparent", b"00-aaaa"), (b"content-length", b"3")]
    heads.learn(TRACED % (b"aaaa", 3, b"abc"), TARGET, headers)
    return heads


def test_an_old_protocol_is_not_cached() -> None:
    heads = HeadCache()
    data = HEAD.replace(b"HTTP/1.1", b"HTTP/1.0") + b"abc"
    heads.learn(data, TARGET, HEADERS)
    assert heads.find(data) is None


def test_a_head_with_other_values_is_read() -> None:
    heads = learned()
    match = heads.find(TRACED % (b"bbbb", 5, b"hello"))
    assert match is not None
    head, start = match
    assert head.target == TARGET
    assert head.headers == {b"host": b"x", b"traceparent": b"00-bbbb", b"content-length": b"5"}
    assert (TRACED % (b"bbbb", 5, b"hello"))[start:] == b"hello"


def test_the_order_of_headers_does_not_matter() -> None:
    data = (
        b"POST /v2/models/m/infer HTTP/1.1\r\nContent-Length: 3\r\nTraceparent: 00-cccc\r\n"
        b"Host: x\r\n\r\nabc"
    )
    match = learned().find(data)
    assert match is not None
    assert match[0].headers[b"traceparent"] == b"00-cccc"


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (b"Host: x", b"Host: y"),
        (b"Host: x", b"Connection: close"),
        (b"Host: x", b"Transfer-Encoding: chunked"),
        (b"Host: x", b"Expect: 100-continue"),
        (b"Host: x", b"Content-Length: 3"),
        (b"Host: x", b"TraceParent: 00-x"),
        (b"Host: x", b"Bad Name: 1"),
        (b"Host: x", b"NoColon"),
        (b"Host: x", b"Unknown: 1"),
        (b"00-bbbb", b"00-\x7f"),
        (b"00-bbbb", b"00-b\tb"),
        (b"Host: x", b"A: b\n c"),
        (b"Host: x", b"A: \x80"),
        (b"Host: x", b" A: b"),
        (b"Content-Length: 3", b"Content-Length: +3"),
        (b"Content-Length: 3", b"Content-Length: 3, 3"),
        (b"Content-Length: 3", b"X-Length: 3"),
        (b"POST /v2", b"GET /v2"),
        (b"models/m/", b"models/n/"),
        (b"HTTP/1.1", b"HTTP/1.0"),
        (b"00-bbbb", b"00-" + b"b" * 80),  # a longer head than any that was parsed
        (b"Host: x", b"Host: x\r\nA: b"),  # more headers than any that was parsed
    ],
)
def test_an_unusual_head_goes_to_the_parser(old: bytes, new: bytes) -> None:
    data = (TRACED % (b"bbbb", 3, b"abc")).replace(old, new)
    assert learned().find(data) is None


def test_folded_lines_are_not_learned() -> None:
    heads = HeadCache()
    data = b"POST /v2/models/m/infer HTTP/1.1\r\nA: b\r\n c\r\nContent-Length: 3\r\n\r\nabc"
    heads.learn(data, TARGET, [(b"a", b"b c"), (b"content-length", b"3")])
    assert heads.find(data.replace(b"A: b", b"A: x")) is None


@pytest.mark.parametrize("value", [b"keep-alive", b"Keep-Alive"])
def test_a_client_that_keeps_its_connection_is_cached(value: bytes) -> None:
    heads = HeadCache()
    data = HEAD.replace(b"\r\n\r\n", b"\r\nConnection: %b\r\n\r\nabc" % value)
    heads.learn(data, TARGET, [*HEADERS, (b"connection", value)])
    assert heads.find(data) is not None
