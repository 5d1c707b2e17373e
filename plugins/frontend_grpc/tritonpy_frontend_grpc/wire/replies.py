"""What a call sends back beside messages: the head of its answer, and its status in trailers."""

from __future__ import annotations

from urllib.parse import quote

from tritonpy import TritonError
from tritonpy_frontend_grpc.status import outcome
from tritonpy_frontend_grpc.wire.head import CONTENT_TYPE, Headers, UnknownEncoding

PLAIN: Headers = ((b"content-type", CONTENT_TYPE),)
"""The head of an answer whose messages are not compressed."""
OK: Headers = ((b"grpc-status", b"0"),)
"""The trailers of an answer where all went well."""
NOT_GRPC = 415
"""HTTP's status for what is no gRPC call."""
ACCEPTED: Headers = ((b"accept", CONTENT_TYPE),)
"""The head that goes with it."""
_PRINTABLE = "".join(map(chr, range(0x20, 0x7F))).replace("%", "")


def head_of(encoding: str) -> Headers:
    """Return the head of an answer whose messages may be compressed in that way."""
    return (*PLAIN, (b"grpc-encoding", encoding.encode()))


def failed(error: TritonError) -> tuple[int, Headers]:
    """Return the status of a call that `error` ended, and the trailers that say so; `error` loses its traceback."""
    status, text, more = outcome(error)
    trailers = [(b"grpc-status", b"%d" % status), (b"grpc-message", percent_encoded(text))]
    if isinstance(error, UnknownEncoding):
        trailers.append((b"grpc-accept-encoding", b"identity,deflate,gzip"))
    return status, [*trailers, *[(name.encode(), value.encode()) for name, value in more]]


def percent_encoded(text: str) -> bytes:
    """Return `text` as `grpc-message` carries it: what is not printable ASCII, and the percent sign, as `%XX` of its UTF-8 bytes."""
    return quote(text, safe=_PRINTABLE, errors="replace").encode()
