"""The head of a call: gRPC headers and metadata."""

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
# Headers of the transport, which gRPC servers do not pass to services.
_TRANSPORT_HEADERS = frozenset(
    {b"content-type", b"te", b"host", b"grpc-timeout", b"grpc-encoding", b"grpc-accept-encoding",
    b"connection", b"content-length"}
)  # fmt: skip
_USUAL_TYPES = frozenset({CONTENT_TYPE, b"application/grpc+proto"})
_TIMEOUT = re.compile(rb"([0-9]{1,8})([HMSmun])")
_UNIT_NS = {b"H": 3_600 * 10**9, b"M": 60 * 10**9, b"S": 10**9, b"m": 10**6, b"u": 10**3, b"n": 1}
_LONGEST_NS = 10**18  # 31 years: keeps times on the server's clock within 63 bits
_READABLE = frozenset({b"identity", b"gzip", b"deflate"})


class MalformedCall(TritonError):
    """A call that violates the gRPC protocol. As in grpc's servers, its status is UNKNOWN."""


class UnknownCompression(Unsupported):
    """An unsupported grpc-encoding. The trailers list the supported ones."""


class CallHead:
    """The head of one call, or of several calls with identical headers.

    `pairs` are the headers as received; `headers` maps them by name.
    """

    __slots__ = ("_checked", "_metadata", "headers", "method", "pairs", "path")

    def __init__(self, method: str, path: str, pairs: Headers) -> None:
        self.method = method
        self.path = path
        self.pairs = pairs
        self.headers = dict(pairs)
        self._metadata: Metadata | None = None
        self._checked = False

    def check(self) -> None:
        """Raise TritonError if the head violates gRPC or names an unsupported compression."""
        if self._checked:
            return
        headers = self.headers
        if self.method != "POST":
            raise MalformedCall(f"Bad method header: {self.method}")
        if headers.get(b"te") != b"trailers":
            raise MalformedCall("Missing :te header" if b"te" not in headers else "Bad :te header")
        if headers.get(b"grpc-encoding", b"identity") not in _READABLE:
            name = headers[b"grpc-encoding"].decode("latin-1")
            raise UnknownCompression(f"Compression algorithm '{name}' not supported.")
        self._checked = True

    def metadata(self) -> Metadata:
        """Return the metadata of the call. Raises MalformedCall if it is invalid."""
        if self._metadata is None:
            self._metadata = read_metadata(self.pairs)
        return self._metadata


def is_grpc_type(content_type: bytes) -> bool:
    """Return whether a content type is gRPC, but not gRPC-Web.

    Any suffix (`+proto`) and any parameters are valid.
    """
    if content_type in _USUAL_TYPES:
        return True
    kind = content_type.lower()
    return kind.startswith(CONTENT_TYPE) and kind[len(CONTENT_TYPE) : len(CONTENT_TYPE) + 1] in (
        b"",
        b"+",
        b";",
        b" ",
    )


def timeout_ns(headers: dict[bytes, bytes]) -> int | None:
    """Return the timeout of the call, None if there is none or it is invalid."""
    value = headers.get(b"grpc-timeout")
    if value is None or (found := _TIMEOUT.fullmatch(value)) is None:
        return None
    return min(int(found[1]) * _UNIT_NS[found[2]], _LONGEST_NS)


def read_metadata(headers: Headers) -> tuple[tuple[str, str | bytes], ...]:
    """Return the metadata.

    Values of `-bin` keys are base64, possibly several separated by commas.
    """
    found: list[tuple[str, str | bytes]] = []
    for name, value in headers:
        if name in _TRANSPORT_HEADERS:
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
        raise MalformedCall("metadata with a key that ends with '-bin' is not base64") from None


def _text(value: bytes) -> str:
    try:
        return value.decode()
    except UnicodeDecodeError:
        return value.decode("latin-1")
