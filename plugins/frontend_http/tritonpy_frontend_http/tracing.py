"""What this frontend adds to the trace of a call: when its request came and when its reply went."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from tritonpy import InferRequest, Trace, Tracer
from tritonpy_frontend_http.encode import Reply

Received = tuple[int, int]
"""When the head of a request was there and when its body was, on the server's clock."""


def sample(tracer: Tracer, request: InferRequest, headers: Mapping[bytes, bytes], received: Received) -> None:
    """Put a trace into `request`, if it is chosen."""
    known = {name: headers[raw].decode("latin-1") for name in tracer.headers if (raw := name.encode()) in headers}
    trace = request.trace = tracer.sample(request.model_name, known)
    if trace is not None:
        trace.stamp("HTTP_RECV_START", received[0])
        trace.stamp("HTTP_RECV_END", received[1])


def send_traced(trace: Trace, send: Callable[[Reply], None], reply: Reply) -> None:
    """Send the reply of a call, the last thing that its trace tells."""
    trace.stamp("HTTP_SEND_START")
    try:
        send(reply)
    finally:
        trace.stamp("HTTP_SEND_END")
        trace.end()
