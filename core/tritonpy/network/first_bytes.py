"""Detection of a connection's protocol by its first bytes. Pure functions.

HTTP/2 begins with a preface (RFC 9113, section 3.4). TLS begins with a ClientHello, which lists the
ALPN names of the client's protocols (RFC 8446, section 4.1.2, and RFC 7301). Everything else is
HTTP/1.1.
"""

from __future__ import annotations

HTTP1 = "http/1.1"
HTTP2 = "h2"
MAX_FIRST_BYTES = 5 + 2**14  # one TLS record
_PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
_HANDSHAKE_RECORD = 0x16
_CLIENT_HELLO = 1
_ALPN = 16
_RECORD_HEADER = 5
_BEFORE_SESSION_ID = 38  # type, length, version and random of a ClientHello


def protocol_of(first: bytes) -> str | None:
    """Return `h2` or `http/1.1` for a connection that begins with `first`, or None.

    `first` has at least one byte. None means that more bytes are needed.
    """
    if first[0] == _HANDSHAKE_RECORD:
        return _protocol_of_tls(first)
    if first.startswith(_PREFACE):
        return HTTP2
    return None if _PREFACE.startswith(first) else HTTP1


def _protocol_of_tls(first: bytes) -> str | None:
    if len(first) < _RECORD_HEADER:
        return None
    length = int.from_bytes(first[3:5], "big")
    if length > MAX_FIRST_BYTES - _RECORD_HEADER:
        return HTTP1  # not a TLS record: the frontend's handshake fails
    if len(first) < _RECORD_HEADER + length:
        return None
    return HTTP2 if HTTP2 in offered_protocols(first[_RECORD_HEADER : _RECORD_HEADER + length]) else HTTP1


def offered_protocols(hello: bytes) -> list[str]:
    """Return the ALPN names in a ClientHello, empty if it has none or is malformed."""
    try:
        return _alpn_of(hello) if hello[0] == _CLIENT_HELLO else []
    except (IndexError, UnicodeDecodeError):
        return []


def _alpn_of(hello: bytes) -> list[str]:
    at = _BEFORE_SESSION_ID
    at += 1 + hello[at]  # session id
    at += 2 + _number(hello, at)  # cipher suites
    at += 1 + hello[at]  # compression methods
    end = at + 2 + _number(hello, at)
    at += 2
    while at + 4 <= min(end, len(hello)):
        kind, length = _number(hello, at), _number(hello, at + 2)
        at += 4
        if kind == _ALPN:
            return _names(hello[at + 2 : at + length])
        at += length
    return []


def _names(listed: bytes) -> list[str]:
    names, at = [], 0
    while at < len(listed):
        length = listed[at]
        names.append(listed[at + 1 : at + 1 + length].decode("ascii"))
        at += 1 + length
    return names


def _number(data: bytes, at: int) -> int:
    return data[at] << 8 | data[at + 1]
