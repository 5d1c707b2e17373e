"""uvicorn's HTTP/1.1 protocol with a short way for inference calls.

Every request but those goes through ASGI as ever. An inference call skips the scope, the task and the messages of ASGI: its body
is collected as it comes and its reply written by the event loop's callback, which saves a third of the CPU time that a small
request costs. A request whose head is known, byte for byte, is not even parsed. It also learns of a client that went away without a task that waits for it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any

from uvicorn.protocols.http.httptools_impl import STATUS_LINE, HttpToolsProtocol

from tritonpy_frontend_http.encode import JSON_TYPE, Reply
from tritonpy_frontend_http.errors import error_body
from tritonpy_frontend_http.infer_calls import Call, InferCalls, Target
from tritonpy_frontend_http.infer_path import infer_target
from tritonpy_frontend_http.known_heads import Head, KnownHeads

MAX_CHUNKS = 65536
_SOONEST_S = 0.01  # the loop's clock has milliseconds
_TOO_MANY_CHUNKS = (
    f"Chunked request body exceeds maximum of {MAX_CHUNKS} non-empty chunks. Send fewer or larger HTTP chunks."
)


class _Answered:
    """What the protocol tells when the connection of an answered call is lost: nobody listens."""

    def set(self) -> None:
        """Take no note."""


_ANSWERED = _Answered()


class InferCycle:
    """One inference call on a connection; what the protocol asks of a cycle of its own, it finds here too."""

    __slots__ = (
        "active", "call", "complete", "disconnected", "headers", "keep_alive",
        "message_event", "parts", "protocol", "response_complete", "target",
    )  # fmt: skip

    def __init__(
        self, protocol: InferProtocol, target: Target, headers: Mapping[bytes, bytes], keep_alive: bool
    ) -> None:
        self.protocol = protocol
        self.target = target
        self.headers = headers
        self.keep_alive = keep_alive
        self.parts: list[bytes] = []
        self.call: Call | None = None
        self.active = False  # its turn on the connection has come
        self.complete = False  # its body is here
        self.response_complete = False
        self.disconnected = False
        self.message_event: InferCycle | _Answered = self

    def set(self) -> None:
        """Take note that the connection is gone, if nothing was answered yet: the protocol's word for it."""
        if not self.response_complete and self.call is not None:
            self.call.cancel()

    def start_if_ready(self) -> None:
        """Hand the call over once the body is here and earlier requests of the connection are answered."""
        if self.active and self.complete and not self.response_complete:
            parts = self.parts
            body = parts[0] if len(parts) == 1 else b"".join(parts)
            self.parts = []
            self.call = Call(self.finish)
            self.protocol.calls.start(self.call, self.target, self.headers, body)

    def finish(self, reply: Reply) -> None:
        """Write the reply, unless the client is gone."""
        # Both name this cycle: undone here, its buffers go with it and not whenever the collector runs.
        self.call, self.message_event = None, _ANSWERED
        transport, keep_alive = self.protocol.transport, self.keep_alive and not self.protocol.calls.draining
        if transport.is_closing() or self.response_complete:
            return
        self.response_complete = True
        head: list[bytes | memoryview] = [STATUS_LINE[reply.status]]
        for name, value in reply.headers:
            head += (name, b": ", value, b"\r\n")
        head.append(b"\r\n" if keep_alive else b"connection: close\r\n\r\n")
        first, *rest = reply.parts
        head.append(first)
        transport.write(b"".join(head))
        for part in rest:
            transport.write(part)
        if not keep_alive:
            transport.close()
        self.protocol.on_response_complete()


class InferProtocol(HttpToolsProtocol):
    """A connection. Use `with_calls` to get the class that uvicorn instantiates."""

    calls: InferCalls
    heads: KnownHeads
    midway = False  # the parser has begun a request and not seen its end
    _idle_since = 0.0  # when the last reply was written, on the loop's clock
    _idle_timer: asyncio.TimerHandle | None = None

    @classmethod
    def with_calls(cls, calls: InferCalls) -> type[InferProtocol]:
        """Return this protocol bound to the calls of a frontend."""
        return type("InferProtocol", (cls,), {"calls": calls, "heads": KnownHeads()})

    def data_received(self, data: bytes) -> None:
        """Take what came: a request whose head is known goes round the parser, which stands between two requests and need not know."""
        fresh = not self.midway and (self.cycle is None or self.cycle.response_complete)
        known = self.heads.match(data) if fresh else None
        if known is not None:
            self._start_known(*known, data)
            return
        super().data_received(data)
        cycle: Any = self.cycle
        if fresh and type(cycle) is InferCycle and cycle.keep_alive and not self.midway:
            self.heads.learn(data, cycle.target, self.headers)

    def _start_known(self, head: Head, start: int, data: bytes) -> None:
        cycle: Any = InferCycle(self, head.target, head.headers, keep_alive=True)
        self.cycle = cycle
        cycle.active = cycle.complete = True
        cycle.parts.append(data[start:])
        cycle.start_if_ready()

    def on_response_complete(self) -> None:
        """Go on with the next request that waits on the connection, or note that it is idle.

        uvicorn's own makes a timer per reply and cancels it at the next request; here one timer per connection looks round now and then.
        """
        self.server_state.total_requests += 1
        if self.transport.is_closing():
            return
        self.flow.resume_reading()
        if self.pipeline:
            self._start_asgi_task(*self.pipeline.pop())
            return
        self._idle_since = self.loop.time()
        if self._idle_timer is None:
            self._idle_timer = self.loop.call_later(self.timeout_keep_alive, self._look_for_idleness)

    def connection_lost(self, exc: Exception | None) -> None:
        """Forget the timer, which would keep the connection's objects until it rings."""
        if self._idle_timer is not None:
            self._idle_timer.cancel()
        super().connection_lost(exc)

    def _look_for_idleness(self) -> None:
        busy = self.midway or not (self.cycle is None or self.cycle.response_complete)
        limit = self.timeout_keep_alive
        left = limit if busy else self._idle_since + limit - self.loop.time()
        if left > 0:
            self._idle_timer = self.loop.call_later(max(left, _SOONEST_S), self._look_for_idleness)
        else:
            self.transport.close()

    def on_message_begin(self) -> None:
        """Begin a request; what ASGI needs is made when its path is known."""
        self.midway = True
        self.url = b""
        self.expect_100_continue = False
        self.headers = []

    def on_headers_complete(self) -> None:
        """Choose the way of the request."""
        url = self.url
        target = None
        if b"/infer" in url and self.parser.get_method() == b"POST":
            target = infer_target(url.partition(b"?")[0].decode("latin-1"))
        if target is None:
            headers, expects = self.headers, self.expect_100_continue
            super().on_message_begin()
            self.url, self.expect_100_continue = url, expects
            self.headers += headers
            super().on_headers_complete()
            return
        before: Any = self.cycle
        keep_alive = self.parser.should_keep_alive()
        cycle: Any = InferCycle(self, target, dict(self.headers), keep_alive)
        self.cycle = cycle
        if self.expect_100_continue:
            self.transport.write(b"HTTP/1.1 100 Continue\r\n\r\n")
        if before is None or before.response_complete:
            cycle.active = True
        else:
            self.flow.pause_reading()
            self.pipeline.appendleft((cycle, self.app))

    def on_body(self, body: bytes) -> None:
        """Collect; an inference call needs its whole body at once, so that reading never pauses for it."""
        cycle: Any = self.cycle
        if type(cycle) is not InferCycle:
            super().on_body(body)
        elif not cycle.response_complete:
            cycle.parts.append(body)
            if len(cycle.parts) > MAX_CHUNKS and cycle.headers.get(b"transfer-encoding") == b"chunked":
                self._refuse_chunks(cycle)

    def _refuse_chunks(self, cycle: InferCycle) -> None:
        body = error_body(_TOO_MANY_CHUNKS)
        cycle.keep_alive = False
        cycle.parts = []
        cycle.finish(Reply(400, [JSON_TYPE, (b"content-length", b"%d" % len(body))], (body,), len(body)))

    def on_message_complete(self) -> None:
        """Start the call whose body is now complete."""
        self.midway = False
        cycle: Any = self.cycle
        if type(cycle) is InferCycle:
            cycle.complete = True
            cycle.start_if_ready()
        else:
            super().on_message_complete()

    def _start_asgi_task(self, cycle: Any, app: Any) -> None:
        if type(cycle) is InferCycle:
            cycle.active = True
            cycle.start_if_ready()
        else:
            super()._start_asgi_task(cycle, app)
