"""Time stamps that this frontend adds to the trace of a call."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from tritonpy import InferRequest
from tritonpy.tracing import Trace, Tracer
from tritonpy_http_api.encode import HttpResponse

Received = tuple[int, int]
"""Arrival times of the head and of the complete body, in ns on the server's clock."""


def sample(
    tracer: Tracer, request: InferRequest, headers: Mapping[bytes, bytes], received: Received
) -> None:
    """Set the trace of `request` if the tracer selects it."""
    known = {
        name: headers[raw].decode("latin-1")
        for name in tracer.headers
        if (raw := name.encode()) in headers
    }
    trace = request.trace = tracer.sample(request.model_name, known)
    if trace is not None:
        trace.stamp("HTTP_RECV_START", received[0])
        trace.stamp("HTTP_RECV_END", received[1])


def send_traced(
    trace: Trace, send: Callable[[HttpResponse], None], http_response: HttpResponse
) -> None:
    """Send the response of a call and end its trace."""
    trace.stamp("HTTP_SEND_START")
    try:
        send(http_response)
    finally:
        trace.stamp("HTTP_SEND_END")
        trace.end()
