"""Header blocks of answers, which are made once for all connections."""

from __future__ import annotations

from functools import lru_cache

from tritonpy_frontend_grpc.wire.head import Headers
from tritonpy_frontend_grpc.wire.replies import ACCEPTED, NOT_GRPC, OK, PLAIN
from tritonpy_frontend_h2.http2.encode import encode

_FINE = (b":status", b"200")


@lru_cache(maxsize=16)
def head_block(headers: Headers) -> bytes:
    """Return the block of an answer's head."""
    return encode([_FINE, *headers])


def refusal_block(trailers: Headers) -> bytes:
    """Return the block of an answer that is nothing but its end."""
    return encode([_FINE, *PLAIN, *trailers])


def trailer_block(trailers: Headers) -> bytes:
    """Return the block that ends an answer."""
    return END if trailers is OK else encode(list(trailers))


START = head_block(PLAIN)
END = encode(list(OK))
NO_GRPC = encode([(b":status", b"%d" % NOT_GRPC), *ACCEPTED])
