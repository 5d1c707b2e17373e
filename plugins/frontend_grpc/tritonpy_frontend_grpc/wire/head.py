"""What a call says ahead of its messages: gRPC's own headers, and the metadata of the client."""

from __future__ import annotations

import binascii
import re
from collections.abc import Sequence
from typing import TYPE_CHECKING

from tritonpy import TritonError, Unsupported

if TYPE_CHECKING:
    from tritonpy_frontend_grpc.call import Metadata

Headers = Sequence[tuple[bytes, bytes]]

CONTENT_TYPE = b"application/grpc"
# What is the transport's: neither grpc's C core nor its other servers show it to a service.
_OWN = frozenset(
    {b"content-type", b"te", b"host", b"grpc-timeout", b"grpc-encoding", b"grpc-accept-encoding", b"connection", b"content-length"}
)  # fmt: skip
_USUAL_TYPES = frozenset({CONTENT_TYPE, b"application/grpc+proto"})
_TIMEOUT = re.compile(rb"([0-9]{1,8})([HMSmun])")
_UNIT_NS = {b"H": 3_600 * 10**9, b"M": 60 * 10**9, b"S": 10**9, b"m": 10**6, b"u": 10**3, b"n": 1}
_LONGEST_NS = 10**18  # 31 years: times on the server's clock stay in 63 bits
_READABLE = frozenset({b"identity", b"gzip", b"deflate"})


class Malformed(TritonError):
    """A call that no gRPC client would make; its status is UNKNOWN, as from gRPC's own servers."""


class UnknownEncoding(Unsupported):
    """Messages compressed in a way that the server cannot undo; its trailers say what it can."""


class Head:
    """The head of a call, or of all calls that have the same one; `pairs` are its headers as they came, `headers` the same by name."""

    __slots__ = ("_checked", "_metadata", "headers", "method", "pairs", "path")

    def __init__(self, method: str, path: str, pairs: Headers) -> None:
        self.method = method
        self.path = path
        self.pairs = pairs
        self.headers = dict(pairs)
        self._metadata: Metadata | None = None
        self._checked = False

    def check(self) -> None:
        """Raise TritonError where the head is not that of a call, or announces a compression that nobody here can undo."""
        if self._checked:
            return
        headers = self.headers
        if self.method != "POST":
            raise Malformed(f"Bad method header: {self.method}")
        if headers.get(b"te") != b"trailers":
            raise Malformed("Missing :te header" if b"te" not in headers else "Bad :te header")
        if headers.get(b"grpc-encoding", b"identity") not in _READABLE:
            name = headers[b"grpc-encoding"].decode("latin-1")
            raise UnknownEncoding(f"Compression algorithm '{name}' not supported.")
        self._checked = True

    def metadata(self) -> Metadata:
        """Return the client's metadata. Raises Malformed where it is not gRPC's."""
        if self._metadata is None:
            self._metadata = metadata_of(self.pairs)
        return self._metadata


def is_grpc_type(content_type: bytes) -> bool:
    """Say whether a content type is gRPC's: with any encoding of messages (`+proto`) and any parameters, but not grpc-web's."""
    if content_type in _USUAL_TYPES:
        return True
    kind = content_type.lower()
    return kind.startswith(CONTENT_TYPE) and kind[len(CONTENT_TYPE) : len(CONTENT_TYPE) + 1] in (b"", b"+", b";", b" ")


def timeout_ns(headers: dict[bytes, bytes]) -> int | None:
    """Return how long the client waits, None for ever. What is no time-out of gRPC's counts as none."""
    value = headers.get(b"grpc-timeout")
    if value is None or (found := _TIMEOUT.fullmatch(value)) is None:
        return None
    return min(int(found[1]) * _UNIT_NS[found[2]], _LONGEST_NS)


def metadata_of(headers: Headers) -> tuple[tuple[str, str | bytes], ...]:
    """Return the client's metadata; keys that end with `-bin` have bytes, which travel as base64, several of them with commas between."""
    found: list[tuple[str, str | bytes]] = []
    for name, value in headers:
        if name in _OWN:
            continue
        key = name.decode("latin-1")
        if name.endswith(b"-bin"):
            found += [(key, _binary(part)) for part in value.split(b",")]
        else:
            found.append((key, _text(value)))
    return tuple(found)


def _binary(part: bytes) -> bytes:
    part = part.strip()
    try:
        return binascii.a2b_base64(part + b"=" * (-len(part) % 4))
    except binascii.Error:
        raise Malformed("metadata with a key that ends with '-bin' is not base64") from None


def _text(value: bytes) -> str:
    try:
        return value.decode()
    except UnicodeDecodeError:
        return value.decode("latin-1")
