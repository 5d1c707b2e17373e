"""Validation of header lists by the rules of HTTP/2."""

from __future__ import annotations

import re

from tritonpy_http2.calls import Headers

_REQUIRED = frozenset({b":method", b":scheme", b":path"})
_PSEUDO = _REQUIRED | {b":authority"}
_CONNECTION_HEADERS = frozenset(
    {b"connection", b"keep-alive", b"proxy-connection", b"transfer-encoding", b"upgrade"}
)
_NAME = re.compile(rb"[!#$%&'*+\-.^_`|~0-9a-z]+")
_FORBIDDEN_IN_VALUES = re.compile(rb"[\0\r\n]")


def is_request(headers: Headers) -> bool:
    """Return whether a header list is a valid request.

    Pseudo-headers come first and occur once, and all fields are valid.
    """
    found: set[bytes] = set()
    pseudo_allowed = True
    for name, value in headers:
        if name.startswith(b":"):
            if not pseudo_allowed or name not in _PSEUDO or name in found:
                return False
            found.add(name)
        else:
            pseudo_allowed = False
            if not _is_field_name(name):
                return False
        if _FORBIDDEN_IN_VALUES.search(value):
            return False
    return found >= _REQUIRED


def body_length(headers: Headers) -> int | None:
    """Return the content-length, None if there is none.

    Raises ValueError if it is invalid or ambiguous.
    """
    lengths = {value for name, value in headers if name == b"content-length"}
    if not lengths:
        return None
    (length,) = lengths
    if not length.isdigit():
        raise ValueError("content-length is not a number")
    return int(length)


def are_trailers(headers: Headers) -> bool:
    """Return whether a header list is valid as trailers."""
    return all(
        [_is_field_name(name) and not _FORBIDDEN_IN_VALUES.search(value) for name, value in headers]
    )


def _is_field_name(name: bytes) -> bool:
    return _NAME.fullmatch(name) is not None and name not in _CONNECTION_HEADERS
