"""One inference call on a connection: its body, its refusals and its response."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Protocol

from uvicorn.protocols.http.httptools_impl import STATUS_LINE

from tritonpy import TritonError, now_ns
from tritonpy.frontend import ClientMemory, RequestMemory, Reservation
from tritonpy_http_api.body_size import check_body_size, declared_size, is_unlimited
from tritonpy_http_api.encode import HttpResponse, encode_error
from tritonpy_http_api.head_cache import HeadCache
from tritonpy_http_api.infer_calls import HttpInferCall, InferCalls, Target
from tritonpy_http_api.request_log import is_logging_requests

if TYPE_CHECKING:
    import asyncio

    from tritonpy_http_api.access import CallContext

_UNCOUNTED = RequestMemory.UNCOUNTED
_MAX_DROPPED_BYTES = (
    64 * 1024 * 1024
)  # longest body that is read and dropped to keep the connection usable
_KEEP_ALIVE = b"\r\n"
_CLOSE = b"connection: close\r\n\r\n"


@lru_cache(maxsize=1024)
def _head(status: int, headers: tuple[tuple[bytes, bytes], ...]) -> bytes:
    return b"".join([STATUS_LINE[status], *[b"%b: %b\r\n" % header for header in headers]])


class CycleConnection(Protocol):
    """The connection of a cycle."""

    calls: InferCalls
    cycle: Any  # that of the last request
    transport: asyncio.Transport

    def client_memory(self) -> ClientMemory:
        """Return the memory of the client of this connection."""

    def reserve_response(self, http_response: HttpResponse) -> HttpResponse:
        """Reserve memory for a response, or return an error response if there is none."""

    def on_response_complete(self) -> None:
        """Start the next pipelined request, or record that the connection is idle."""

    def close_lingering(self) -> None:
        """Close the connection, but read what the client still sends."""


class InferCycle:
    """One inference call on a connection, with the interface of uvicorn's request cycles.

    `started_ns` is 0 if tracing is off.
    """

    ending: bytes = _KEEP_ALIVE
    size: int = 0  # bytes of the body received so far
    oversize: bool = False
    refusal: HttpResponse | None = None  # set if the body is not needed for the response
    memory: Reservation | None = None  # for the body
    early_checked: bool = False  # the head was checked before the body was complete
    call: HttpInferCall | None = None
    context: CallContext | None = None  # set if calls need authorization
    translate: Callable[[HttpResponse], HttpResponse] | None = None  # set by a dialect
    active: bool = False  # earlier requests of the connection have their responses
    complete: bool = False  # the body is complete
    response_complete: bool = False
    disconnected: bool = False

    def __init__(
        self,
        protocol: CycleConnection,
        target: Target,
        headers: Mapping[bytes, bytes],
        keep_alive: bool,
        started_ns: int,
    ) -> None:
        self.protocol = protocol
        self.target = target
        self.headers = headers
        self.keep_alive = keep_alive
        self.started_ns = started_ns
        self.parts: list[bytes] = []

    @property
    def message_event(self) -> InferCycle:
        """The event that the protocol sets when the connection is lost: this object."""
        return self

    def set(self) -> None:
        """Release the body and cancel the call.

        The connection is lost or the rest will not arrive.
        """
        self.parts, self.memory = [], None
        if not self.response_complete and self.call is not None:
            self.call.cancel()

    def start_if_ready(self) -> None:
        """Start the call if the body is complete and earlier requests have their responses."""
        if self.refusal is not None:
            self.send_refusal()
        elif self.active and self.complete and not self.response_complete:
            parts = self.parts
            body = parts[0] if len(parts) == 1 else b"".join(parts)
            self.parts = []
            if self.oversize:
                self.call = HttpInferCall(self.finish, self.context)
                self.protocol.calls.refuse_size(self.call, self.target, self.headers, self.size)
            else:
                self.start(body)

    def start(self, body: bytes) -> None:
        """Start the call with its complete body."""
        self.call = call = HttpInferCall(self.finish, self.context)
        if self.memory is not None:
            call.memory, self.memory = self.memory, None
        if self.started_ns:
            call.received = self.started_ns, now_ns()
        self.protocol.calls.start(call, self.target, self.headers, body)

    def take(self, part: bytes) -> None:
        """Keep a part of the body, unless the body is too large."""
        self.size = size = self.size + len(part)
        calls = self.protocol.calls
        limit = calls.limit
        if self.refusal is not None:
            return
        if size > limit and not is_unlimited(self.headers, limit):
            self.oversize, self.parts, self.memory = True, [], None
        elif 0 < calls.max_body_bytes < size:
            self._refuse(check_body_size, size, calls.max_body_bytes)
        else:
            if size > _UNCOUNTED or not self.active:
                self._reserve(size)
            self.parts.append(part)

    def reject_early(self) -> None:
        """Refuse the call by its head alone if possible, before its body is read."""
        self.early_checked = True
        if self.refusal is None:
            self.refusal = self.protocol.calls.early_refusal(self.target, self.headers)
        if self.refusal is not None:
            self.send_refusal()

    def send_refusal(self) -> None:
        """Send the refusal, if any, once earlier requests have their responses.

        The rest of a short body is dropped on arrival. A long body closes the connection.
        """
        http_response = self.refusal
        if http_response is None or self.call is not None or self.response_complete:
            return
        self.parts, self.memory = [], None
        if self.active:
            if not self.complete and not 0 < declared_size(self.headers) <= _MAX_DROPPED_BYTES:
                self.keep_alive = False
            self.call = call = HttpInferCall(self.finish, self.context)
            self.protocol.calls.respond(call, http_response)

    def _reserve(self, size: int) -> None:
        if self.memory is None:
            self.memory = self.protocol.client_memory().reservation()
        self._refuse(self.memory.require, size)

    def _refuse(self, check: Callable[..., None], *arguments: int) -> None:
        try:
            check(*arguments)
        except TritonError as error:
            self.refusal = encode_error(error)
            self.reject_early()

    def finish(self, http_response: HttpResponse) -> None:
        """Write the response, unless the client has disconnected."""
        self.call = (
            None  # breaks a reference cycle, so that buffers do not wait for the garbage collector
        )
        protocol = self.protocol
        if self.translate is not None:
            http_response = self.translate(http_response)
        if is_logging_requests(protocol.calls.log):
            self._log_request(http_response.status)
        transport, keep_alive = protocol.transport, self.keep_alive and not protocol.calls.draining
        if transport.is_closing() or self.response_complete:
            return
        self.response_complete = True
        if http_response.size > _UNCOUNTED:
            http_response = protocol.reserve_response(http_response)
        parts = http_response.parts
        head = _head(http_response.status, tuple(http_response.headers))
        transport.write(b"".join((head, self.ending if keep_alive else _CLOSE, parts[0])))
        if len(parts) > 1:
            for part in parts[1:]:
                transport.write(part)
        if keep_alive or self.complete:
            if not keep_alive:
                transport.close()
            protocol.on_response_complete()
        else:
            protocol.close_lingering()

    def _log_request(self, status: int) -> None:
        from tritonpy_http_api.logged_requests import log_infer

        log_infer(self.protocol.calls.log, self.target, status)


def start_known(protocol: CycleConnection, heads: HeadCache, data: bytes) -> bool:
    """Start the call of a complete request with a cached head; return False for other data."""
    known = heads.find(data)
    if known is None:
        return False
    (target, headers, size), start = known
    calls = protocol.calls
    cycle = InferCycle(protocol, target, headers, True, now_ns() if calls.tracer.active else 0)
    protocol.cycle = cycle
    cycle.active = cycle.complete = True
    if len(data) > _UNCOUNTED or size > calls.limit or 0 < calls.max_body_bytes < size:
        cycle.take(data[start:])
        cycle.start_if_ready()
    else:
        cycle.start(data[start:])
    return True
