"""Request framing checks of RFC 9112, against heads that two parsers could read differently."""

from __future__ import annotations

from collections.abc import Iterable

from tritonpy.network.http1.refusal import Refusal

Headers = list[tuple[bytes, bytes]]
_TWO_HOSTS = Refusal(400, "The request has more than one Host header")
_OLD_CODING = Refusal(400, "Transfer-Encoding needs HTTP/1.1")
_UNKNOWN_CODING = Refusal(501, "Transfer-Encoding must be 'chunked'")
_UNKNOWN_VERSION = Refusal(505, "Only HTTP/1.1 and HTTP/1.0 are supported")


def framing_error(version: str, headers: Headers) -> Refusal | None:
    """Return the refusal for an invalid head, or None. Header names are in lower case.

    The parser has already refused invalid lengths, a length together with a transfer coding, and
    nonstandard line ends and names.
    """
    if version not in {"1.1", "1.0"}:
        return _UNKNOWN_VERSION
    hosts, codings = 0, []
    for name, value in headers:
        if name == b"host":
            hosts += 1
        elif name == b"transfer-encoding":
            codings.append(value)
    if hosts > 1:
        return _TWO_HOSTS
    if codings and version == "1.0":
        return _OLD_CODING
    if codings and [coding.strip().lower() for coding in codings] != [b"chunked"]:
        return _UNKNOWN_CODING
    return None


def origin_form(url: bytes) -> bytes:
    """Return path and query of a request target.

    Clients of proxies send `http://host/path`, which means the same.
    """
    if not url[:8].lower().startswith((b"http://", b"https://")):
        return url
    _, _, rest = url.partition(b"://")
    authority = min((at for mark in (b"/", b"?") if (at := rest.find(mark)) >= 0), default=len(rest))
    path = rest[authority:]
    return path if path.startswith(b"/") else b"/" + path


def without_upgrade(method: bytes, url: bytes, version: str, headers: Iterable[tuple[bytes, bytes]]) -> bytes:
    """Return the head of a request without its upgrade headers, which a server may ignore."""
    lines = [method + b" " + url + b" HTTP/" + version.encode()]
    for name, value in headers:
        if name == b"connection":
            value = b",".join(token for token in value.split(b",") if token.strip().lower() != b"upgrade")  # noqa: PLW2901
        if name != b"upgrade":
            lines.append(name + b": " + value)
    return b"\r\n".join([*lines, b"", b""])
