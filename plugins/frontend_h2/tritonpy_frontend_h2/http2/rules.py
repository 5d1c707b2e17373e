"""What HTTP/2 asks of the header list of a request."""

from __future__ import annotations

import re

from tritonpy_frontend_h2.http2.calls import Headers

_NEEDED = frozenset({b":method", b":scheme", b":path"})
_PSEUDO = _NEEDED | {b":authority"}
_OF_HTTP_1 = frozenset({b"connection", b"keep-alive", b"proxy-connection", b"transfer-encoding", b"upgrade"})
_NAME = re.compile(rb"[!#$%&'*+\-.^_`|~0-9a-z]+")
_NEVER_IN_VALUES = re.compile(rb"[\0\r\n]")


def is_request(headers: Headers) -> bool:
    """Say whether a list is that of a request: pseudo-headers first, each once, and nothing that HTTP/2 forbids."""
    found: set[bytes] = set()
    in_front = True
    for name, value in headers:
        if name.startswith(b":"):
            if not in_front or name not in _PSEUDO or name in found:
                return False
            found.add(name)
        else:
            in_front = False
            if not _is_field_name(name):
                return False
        if _NEVER_IN_VALUES.search(value):
            return False
    return found >= _NEEDED


def body_length(headers: Headers) -> int | None:
    """Return how long a list says that the body is, None where it does not. Raises ValueError where it says no number, or several."""
    said = {value for name, value in headers if name == b"content-length"}
    if not said:
        return None
    (length,) = said
    if not length.isdigit():
        raise ValueError("a length that is no number")
    return int(length)


def are_trailers(headers: Headers) -> bool:
    """Say whether a list may come behind a body."""
    return all([_is_field_name(name) and not _NEVER_IN_VALUES.search(value) for name, value in headers])


def _is_field_name(name: bytes) -> bool:
    return _NAME.fullmatch(name) is not None and name not in _OF_HTTP_1
