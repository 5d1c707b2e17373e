"""Headers and trailers of gRPC responses."""

from __future__ import annotations

from urllib.parse import quote

from tritonpy import TritonError
from tritonpy_frontend_grpc.status import rpc_status
from tritonpy_frontend_grpc.wire.head import CONTENT_TYPE, Headers, UnknownCompression

RESPONSE_HEADERS: Headers = ((b"content-type", CONTENT_TYPE),)
"""Headers of a response with uncompressed messages."""
OK_TRAILERS: Headers = ((b"grpc-status", b"0"),)
"""Trailers of a successful response."""
UNSUPPORTED_MEDIA_TYPE = 415
"""HTTP status of a request that is not gRPC."""
ACCEPT_HEADERS: Headers = ((b"accept", CONTENT_TYPE),)
"""Headers of that response."""
_PRINTABLE = "".join(map(chr, range(0x20, 0x7F))).replace("%", "")


def compressed_headers(encoding: str) -> Headers:
    """Return the headers of a response whose messages may be compressed with `encoding`."""
    return (*RESPONSE_HEADERS, (b"grpc-encoding", encoding.encode()))


def status_and_trailers(error: TritonError) -> tuple[int, Headers]:
    """Return the status code and the trailers for `error`, and clear its traceback."""
    status, text, more = rpc_status(error)
    trailers = [(b"grpc-status", b"%d" % status), (b"grpc-message", percent_encoded(text))]
    if isinstance(error, UnknownCompression):
        trailers.append((b"grpc-accept-encoding", b"identity,deflate,gzip"))
    return status, [*trailers, *[(name.encode(), value.encode()) for name, value in more]]


def percent_encoded(text: str) -> bytes:
    """Return `text` percent-encoded for `grpc-message`.

    Printable ASCII stays as it is, except the percent sign.
    """
    return quote(text, safe=_PRINTABLE, errors="replace").encode()
