"""Heads that were parsed before."""

from __future__ import annotations

import pytest

from tritonpy_frontend_http.known_heads import MOST, KnownHeads

TARGET = ("m", "")
HEAD = b"POST /v2/models/m/infer HTTP/1.1\r\nHost: x\r\nContent-Length: 3\r\n\r\n"
HEADERS = [(b"host", b"x"), (b"content-length", b"3")]


@pytest.fixture
def heads() -> KnownHeads:
    heads = KnownHeads()
    heads.learn(HEAD + b"abc", TARGET, HEADERS)
    return heads


def test_a_head_that_was_learned_is_matched_with_any_body_of_its_length(heads: KnownHeads) -> None:
    match = heads.match(HEAD + b"xyz")
    assert match is not None
    head, start = match
    assert (head.target, head.headers[b"content-length"], (HEAD + b"xyz")[start:]) == (TARGET, b"3", b"xyz")


@pytest.mark.parametrize(
    "data", [HEAD, HEAD + b"ab", HEAD + b"abcd", HEAD + b"abc" + HEAD, b"", b"abc", HEAD[1:] + b"abc"]
)
def test_what_is_not_exactly_one_request_is_not_matched(heads: KnownHeads, data: bytes) -> None:
    assert heads.match(data) is None


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
def test_a_head_that_negotiates_anything_is_not_learned(more: tuple[bytes, bytes]) -> None:
    heads = KnownHeads()
    heads.learn(HEAD + b"abc", TARGET, [*HEADERS, more])
    assert heads.match(HEAD + b"abc") is None


@pytest.mark.parametrize("size", [b"4", b"", b"-3", b"3.0", b"\xb2"])
def test_a_length_that_is_not_the_bodys_is_not_learned(size: bytes) -> None:
    heads = KnownHeads()
    heads.learn(HEAD + b"abc", TARGET, [(b"content-length", size)])
    assert heads.match(HEAD + b"abc") is None


def test_heads_without_end_do_not_fill_the_memory() -> None:
    heads = KnownHeads()
    for number in range(3 * MOST):
        heads.learn(b"X: %d\r\n\r\nabc" % number, TARGET, HEADERS)
    assert len(heads._heads) <= MOST


def test_a_head_longer_than_what_is_remembered_is_left_to_the_parser() -> None:
    heads = KnownHeads()
    long = b"X: " + b"y" * 4096 + b"\r\n\r\nabc"
    heads.learn(long, TARGET, HEADERS)
    assert heads.match(long) is None
