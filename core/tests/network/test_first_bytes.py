from __future__ import annotations

import ssl

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tritonpy.network.first_bytes import MAX_FIRST_BYTES, offered_protocols, protocol_of

PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"


def client_hello(*protocols: str) -> bytes:
    """Return the first bytes of a real TLS client that offers `protocols`."""
    context = ssl.create_default_context()
    if protocols:
        context.set_alpn_protocols(list(protocols))
    outgoing = ssl.MemoryBIO()
    connection = context.wrap_bio(ssl.MemoryBIO(), outgoing, server_hostname="localhost")
    with pytest.raises(ssl.SSLWantReadError):
        connection.do_handshake()
    return outgoing.read()


@pytest.mark.parametrize(
    ("first", "protocol"),
    [
        (b"G", "http/1.1"),
        (b"POST ", "http/1.1"),
        (b"PR", None),
        (b"PROPFIND", "http/1.1"),
        (b"PRI * HTTP/2.0\r\n\r\nSM", None),
        (b"PRI * HTTP/1.1\r\n", "http/1.1"),
        (PREFACE, "h2"),
        (PREFACE + b"\0\0\0", "h2"),
        (b"\x16\x03", None),
        (b"\x16\x03\x01\xff\xff", "http/1.1"),
        (b"\x00", "http/1.1"),
    ],
)
def test_the_protocol_follows_from_the_first_bytes(first: bytes, protocol: str | None) -> None:
    assert protocol_of(first) == protocol


@pytest.mark.parametrize(
    ("offered", "protocol"),
    [((), "http/1.1"), (("http/1.1",), "http/1.1"), (("h2",), "h2"), (("http/1.1", "h2"), "h2")],
)
def test_a_tls_client_gets_http2_if_it_offers_it(offered: tuple[str, ...], protocol: str) -> None:
    hello = client_hello(*offered)
    assert offered_protocols(hello[5:]) == list(offered)
    assert protocol_of(hello) == protocol
    assert protocol_of(hello[:-1]) is None


@given(st.binary(min_size=1, max_size=200), st.booleans())
def test_any_bytes_have_a_protocol_or_need_more(first: bytes, is_tls: bool) -> None:
    assert protocol_of((b"\x16" if is_tls else b"") + first) in ("h2", "http/1.1", None)


@given(st.data())
def test_a_damaged_hello_is_no_error(data: st.DataObject) -> None:
    hello = bytearray(client_hello("h2"))
    for _ in range(data.draw(st.integers(1, 5))):
        hello[data.draw(st.integers(5, len(hello) - 1))] = data.draw(st.integers(0, 255))
    assert protocol_of(bytes(hello)) in ("h2", "http/1.1")
    assert protocol_of(bytes(hello).ljust(MAX_FIRST_BYTES, b"\0")) in ("h2", "http/1.1")
