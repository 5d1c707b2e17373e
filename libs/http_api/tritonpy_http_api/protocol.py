"""uvicorn's HTTP/1.1 protocol with a fast path for inference calls.

All other requests go through ASGI. An inference call needs no ASGI scope, task or messages. The
protocol collects its body and writes its response in callbacks of the event loop, which saves a
third of the CPU time of a small request. A request with a cached head is not parsed at all.
Disconnects are detected without a waiting task.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from tritonpy import TritonError, now_ns
from tritonpy.frontend import ClientMemory, Reservation
from tritonpy_http1 import HttpConnection
from tritonpy_http_api.body_size import MAX_CHUNKS, TOO_MANY_CHUNKS
from tritonpy_http_api.encode import JSON_TYPE, HttpResponse, encode_error
from tritonpy_http_api.errors import error_body
from tritonpy_http_api.head_cache import HeadCache
from tritonpy_http_api.infer_calls import InferCalls, Target
from tritonpy_http_api.infer_cycle import InferCycle, start_known
from tritonpy_http_api.infer_path import infer_target

if TYPE_CHECKING:
    from tritonpy_http_api.access import CallContext

_KEEP_ALIVE_HTTP10 = b"connection: keep-alive\r\n\r\n"  # HTTP/1.0 closes by default
_CONTINUE = b"HTTP/1.1 100 Continue\r\n\r\n"


class InferProtocol(HttpConnection):
    """A connection. `with_calls` returns the class that uvicorn instantiates."""

    calls: InferCalls
    # None if calls need authorization: every head is parsed, so that it is checked in one place.
    heads: HeadCache | None
    _memory: ClientMemory | None = None
    _unsent_memory: Reservation | None = None  # for data that the client has not read

    @classmethod
    def with_calls(cls, calls: InferCalls) -> type[InferProtocol]:
        """Return this class bound to the calls of a frontend."""
        return type("InferProtocol", (cls,), {"calls": calls, "heads": HeadCache()})

    def data_received(self, data: bytes) -> None:
        """Process received data.

        A request with a cached head bypasses the parser, which is between requests.
        """
        cycle: Any = self.cycle
        heads = self.heads
        if self.in_request or self.refuses or not (cycle is None or cycle.response_complete):
            heads = None
        elif heads is not None and start_known(self, heads, data):
            return
        super().data_received(data)
        cycle = self.cycle
        if (
            self.in_request
            and not self.in_head
            and type(cycle) is InferCycle
            and not cycle.early_checked
        ):
            cycle.reject_early()
        if (
            heads is not None
            and type(cycle) is InferCycle
            and cycle.keep_alive
            and not self.in_request
        ):
            heads.learn(data, cycle.target, self.headers)

    def client_memory(self) -> ClientMemory:
        """Return the memory of the client of this connection."""
        if self._memory is None:
            # An in-memory connection serves one request of a client that already has a
            # ClientMemory.
            self._memory = (
                self.transport.get_extra_info("client_memory") or self.calls.memory.client()
            )
        return self._memory

    def reserve_response(self, http_response: HttpResponse) -> HttpResponse:
        """Reserve memory for a response that the client may not read at once.

        Returns an error response instead if the request memory is full.
        """
        memory = self._unsent_memory
        if memory is None:
            memory = self.client_memory().reservation()
        try:
            memory.require(self.transport.get_write_buffer_size() + http_response.size)
        except TritonError as error:
            return encode_error(error)
        self._unsent_memory = memory
        return http_response

    def pause_writing(self) -> None:
        """Reserve memory for unread data; close the connection if the request memory is full."""
        super().pause_writing()
        if self._unsent_memory is None:
            self._unsent_memory = memory = self.client_memory().reservation()
            if not memory.grow(self.transport.get_write_buffer_size()):
                self.transport.abort()

    def resume_writing(self) -> None:
        """Release the memory: the client has read the data."""
        super().resume_writing()
        self._unsent_memory = None

    def connection_lost(self, exc: Exception | None) -> None:
        """Release the memory of the client."""
        self._unsent_memory = None
        super().connection_lost(exc)

    def call_context(self, target: Target) -> CallContext | None:
        """Return the context of an inference call, or None if calls need no authorization.

        Called when the head is complete.
        """
        return None

    def find_target(self) -> Target | None:
        """Return the target of the POST request whose head is complete, None for other calls."""
        url = self.url
        if b"/infer" not in url:
            return None
        return infer_target(url.partition(b"?")[0].decode("latin-1"))

    def make_cycle(
        self, target: Target, headers: Mapping[bytes, bytes], keep_alive: bool, started_ns: int
    ) -> InferCycle:
        """Return the cycle of an inference call."""
        return InferCycle(self, target, headers, keep_alive, started_ns)

    def on_headers_complete(self) -> None:
        """Start an inference call or an ASGI request."""
        if not self.check_head():
            return
        target = self.find_target() if self.parser.get_method() == b"POST" else None
        if target is None:
            self.begin_asgi()
            return
        previous: Any = self.cycle
        keep_alive = self.parser.should_keep_alive()
        started_ns = now_ns() if self.calls.tracer.active else 0
        cycle: Any = self.make_cycle(target, dict(self.headers), keep_alive, started_ns)
        cycle.context = self.call_context(target)
        if cycle.context is not None and cycle.context.refusal is not None:
            cycle.refusal = encode_error(cycle.context.refusal)
        self.cycle = cycle
        if keep_alive and self.parser.get_http_version() == "1.0":
            cycle.ending = _KEEP_ALIVE_HTTP10
        if previous is None or previous.response_complete:
            self._activate(cycle)
        else:
            self.wait_in_pipeline(previous, cycle)

    def _activate(self, cycle: InferCycle) -> None:
        cycle.active = True
        if self.expect_100_continue and not cycle.complete:
            if not cycle.early_checked:
                cycle.reject_early()
            if cycle.refusal is None:
                self.transport.write(_CONTINUE)
        cycle.send_refusal()

    def on_body(self, body: bytes) -> None:
        """Collect the body.

        Reading never pauses for an inference call, which needs its complete body.
        """
        self.moved()
        cycle: Any = self.cycle
        if type(cycle) is not InferCycle:
            state = cycle.scope["state"]
            state["chunks"] = state.get("chunks", 0) + 1
            super().on_body(body)
        elif not cycle.response_complete:
            cycle.take(body)
            if (
                len(cycle.parts) > MAX_CHUNKS
                and cycle.headers.get(b"transfer-encoding") == b"chunked"
            ):
                self._refuse_chunks(cycle)

    @staticmethod
    def _refuse_chunks(cycle: InferCycle) -> None:
        body = error_body(TOO_MANY_CHUNKS)
        cycle.refusal = HttpResponse(
            400, [JSON_TYPE, (b"content-length", b"%d" % len(body))], (body,), len(body)
        )
        cycle.reject_early()

    def on_message_complete(self) -> None:
        """Start the call: its body is complete."""
        if self.in_head:
            return  # the request is parsed again
        self.in_request = False
        cycle: Any = self.cycle
        if type(cycle) is InferCycle:
            cycle.complete = True
            cycle.start_if_ready()
        else:
            super().on_message_complete()

    def _start_asgi_task(self, cycle: Any, app: Any) -> None:
        if type(cycle) is InferCycle:
            self._activate(cycle)
            cycle.start_if_ready()
        else:
            super()._start_asgi_task(cycle, app)
