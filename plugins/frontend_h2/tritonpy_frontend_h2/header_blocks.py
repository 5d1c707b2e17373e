"""Header blocks of responses, encoded once for all connections."""

from __future__ import annotations

from functools import lru_cache

from tritonpy_frontend_grpc.wire.head import Headers
from tritonpy_frontend_grpc.wire.response_headers import (
    ACCEPT_HEADERS,
    OK_TRAILERS,
    RESPONSE_HEADERS,
    UNSUPPORTED_MEDIA_TYPE,
)
from tritonpy_http2 import encode

_STATUS_OK = (b":status", b"200")


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


START = response_head_block(RESPONSE_HEADERS)
END = encode(list(OK_TRAILERS))
NOT_GRPC_BLOCK = encode([(b":status", b"%d" % UNSUPPORTED_MEDIA_TYPE), *ACCEPT_HEADERS])
