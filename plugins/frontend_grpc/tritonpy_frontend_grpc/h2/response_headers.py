"""Headers and trailers of gRPC responses, encoded once for all connections."""

from __future__ import annotations

import base64
from functools import lru_cache
from typing import TYPE_CHECKING
from urllib.parse import quote

from tritonpy import TritonError
from tritonpy_frontend_grpc.h2.head import CONTENT_TYPE, Headers, UnknownCompression
from tritonpy_frontend_grpc.status import rpc_status
from tritonpy_http2 import encode
from tritonpy_load_reports.report import GRPC_METADATA

if TYPE_CHECKING:
    from tritonpy_frontend_grpc.service import InferenceService

RESPONSE_HEADERS: Headers = ((b"content-type", CONTENT_TYPE),)
"""Headers of a response with uncompressed messages."""
OK_TRAILERS: Headers = ((b"grpc-status", b"0"),)
"""Trailers of a successful response."""
UNSUPPORTED_MEDIA_TYPE = 415
"""HTTP status of a request that is not gRPC."""
ACCEPT_HEADERS: Headers = ((b"accept", CONTENT_TYPE),)
"""Headers of that response."""
_PRINTABLE = "".join(map(chr, range(0x20, 0x7F))).replace("%", "")
_STATUS_OK = (b":status", b"200")


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


@lru_cache(maxsize=16)
def response_head_block(headers: Headers) -> bytes:
    """Return the block that starts a response."""
    return encode([_STATUS_OK, *headers])


def refusal_block(trailers: Headers) -> bytes:
    """Return the block of a response without a message."""
    return encode([_STATUS_OK, *RESPONSE_HEADERS, *trailers])


def trailer_block(trailers: Headers) -> bytes:
    """Return the block that ends a response."""
    return END if trailers is OK_TRAILERS else encode(list(trailers))


def load_end_block(service: InferenceService) -> bytes:
    """Return the block that ends a response of a server that reports its load."""
    if service.note_response is not None:
        service.note_response()
    if service.load_end_block is None:
        # gRPC sends binary metadata as base64 without padding
        text = base64.b64encode(service.load_report).rstrip(b"=")
        service.load_end_block = encode([*OK_TRAILERS, (GRPC_METADATA.encode(), text)])
    return service.load_end_block if service.load_report else END


START = response_head_block(RESPONSE_HEADERS)
END = encode(list(OK_TRAILERS))
NOT_GRPC_BLOCK = encode([(b":status", b"%d" % UNSUPPORTED_MEDIA_TYPE), *ACCEPT_HEADERS])
