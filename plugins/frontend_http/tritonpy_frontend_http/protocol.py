"""uvicorn's HTTP/1.1 protocol with a short way for inference calls.

Every request but those goes through ASGI as ever. An inference call skips the scope, the task and the messages of ASGI: its body
is collected as it comes and its reply written by the event loop's callback, which saves a third of the CPU time that a small
request costs. A request whose head is known, byte for byte, is not even parsed. It also learns of a client that went away without a task that waits for it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import msgspec
from uvicorn.protocols.http.httptools_impl import STATUS_LINE

from tritonpy import ClientMemory, HttpConnection, RequestMemory, Reservation, TritonError, now_ns
from tritonpy_frontend_http.body_size import announced_size, check_body_size, unlimited
from tritonpy_frontend_http.encode import JSON_TYPE, Reply, encode_error
from tritonpy_frontend_http.errors import error_body
from tritonpy_frontend_http.infer_calls import Call, InferCalls, Target
from tritonpy_frontend_http.infer_path import infer_target
from tritonpy_frontend_http.known_heads import Head, KnownHeads
from tritonpy_frontend_http.telling import tells

if TYPE_CHECKING:
    from tritonpy_frontend_http.access import Visit

MAX_CHUNKS = 65536
_UNCOUNTED = RequestMemory.UNCOUNTED
_DROPPED = 64 * 1024 * 1024  # bytes of a body that are read and dropped so that the connection can be used on
_GOES_ON = b"\r\n"
_GOES_ON_OLD = b"connection: keep-alive\r\n\r\n"  # HTTP/1.0 closes where nothing is said
_CLOSES = b"connection: close\r\n\r\n"
_CONTINUE = b"HTTP/1.1 100 Continue\r\n\r\n"
_TOO_MANY_CHUNKS = (
    f"Chunked request body exceeds maximum of {MAX_CHUNKS} non-empty chunks. Send fewer or larger HTTP chunks."
)


@lru_cache(maxsize=1024)
def _head(status: int, headers: tuple[tuple[bytes, bytes], ...]) -> bytes:
    return b"".join([STATUS_LINE[status], *[b"%b: %b\r\n" % header for header in headers]])


class InferCycle(msgspec.Struct, eq=False):
    """One inference call on a connection; what the protocol asks of a cycle of its own, it finds here too."""

    protocol: InferProtocol
    target: Target
    headers: Mapping[bytes, bytes]
    keep_alive: bool
    began_ns: int  # 0 where nothing is traced
    ending: bytes = _GOES_ON
    parts: list[bytes] = []  # each has its own
    size: int = 0  # of a body that comes in parts
    oversize: bool = False
    refusal: Reply | None = None  # the answer, where the body is not needed for it
    memory: Reservation | None = None  # for the body
    judged: bool = False  # its head was looked at before its body is here
    call: Call | None = None
    visit: Visit | None = None  # set where calls must be admitted
    active: bool = False  # its turn on the connection has come
    complete: bool = False  # its body is here
    response_complete: bool = False
    disconnected: bool = False

    @property
    def message_event(self) -> InferCycle:
        """Whom the protocol tells that the connection is gone."""
        return self

    def set(self) -> None:
        """Record that the connection is gone, or that what is not here yet will not come: the protocol's word for it."""
        self.parts, self.memory = [], None
        if not self.response_complete and self.call is not None:
            self.call.cancel()

    def start_if_ready(self) -> None:
        """Hand the call over once the body is here and earlier requests of the connection are answered."""
        if self.refusal is not None:
            self.answer_refusal()
        elif self.active and self.complete and not self.response_complete:
            parts = self.parts
            body = parts[0] if len(parts) == 1 else b"".join(parts)
            self.parts = []
            if self.oversize:
                self.call = Call(self.finish, self.visit)
                self.protocol.calls.refuse_size(self.call, self.target, self.headers, self.size)
            else:
                self.start(body)

    def start(self, body: bytes) -> None:
        """Hand the call over: its whole body is here, and it is the connection's turn for it."""
        self.call = call = Call(self.finish, self.visit)
        if self.memory is not None:
            call.memory, self.memory = self.memory, None
        if self.began_ns:
            call.received = self.began_ns, now_ns()
        self.protocol.calls.start(call, self.target, self.headers, body)

    def take(self, part: bytes) -> None:
        """Keep a part of the body, unless the whole is too large already."""
        self.size = size = self.size + len(part)
        calls = self.protocol.calls
        limit = calls.limit
        if self.refusal is not None:
            return
        if size > limit and not unlimited(self.headers, limit):
            self.oversize, self.parts, self.memory = True, [], None
        elif 0 < calls.max_body_bytes < size:
            self._refuse(check_body_size, size, calls.max_body_bytes)
        else:
            if size > _UNCOUNTED or not self.active:
                self._reserve(size)
            self.parts.append(part)

    def judge(self) -> None:
        """Answer from the head alone where that is possible, in its turn: before the body is read, which may be large."""
        self.judged = True
        if self.refusal is None:
            self.refusal = self.protocol.calls.early_refusal(self.target, self.headers)
        if self.refusal is not None:
            self.answer_refusal()

    def answer_refusal(self) -> None:
        """Send the refusal if there is one and its turn has come. The rest of a short body is dropped as it comes; a long one ends the connection."""
        reply = self.refusal
        if reply is None or self.call is not None or self.response_complete:
            return
        self.parts, self.memory = [], None
        if self.active:
            if not self.complete and not 0 < announced_size(self.headers) <= _DROPPED:
                self.keep_alive = False
            self.call = call = Call(self.finish, self.visit)
            self.protocol.calls.answer(call, reply)

    def _reserve(self, size: int) -> None:
        if self.memory is None:
            self.memory = self.protocol.client_memory().reservation()
        self._refuse(self.memory.require, size)

    def _refuse(self, check: Callable[..., None], *arguments: int) -> None:
        try:
            check(*arguments)
        except TritonError as error:
            self.refusal = encode_error(error)
            self.judge()

    def finish(self, reply: Reply) -> None:
        """Write the reply, unless the client is gone."""
        self.call = None  # it names this cycle: undone here, its buffers go with it and not whenever the collector runs
        protocol = self.protocol
        if tells(protocol.calls.log):
            self._tell(reply.status)
        transport, keep_alive = protocol.transport, self.keep_alive and not protocol.calls.draining
        if transport.is_closing() or self.response_complete:
            return
        self.response_complete = True
        if reply.size > _UNCOUNTED:
            reply = protocol.reserve_reply(reply)
        parts = reply.parts
        head = _head(reply.status, tuple(reply.headers))
        transport.write(b"".join((head, self.ending if keep_alive else _CLOSES, parts[0])))
        if len(parts) > 1:
            for part in parts[1:]:
                transport.write(part)
        if keep_alive or self.complete:
            if not keep_alive:
                transport.close()
            protocol.on_response_complete()
        else:
            protocol.close_lingering()

    def _tell(self, status: int) -> None:
        from tritonpy_frontend_http.told_requests import tell_infer

        tell_infer(self.protocol.calls.log, self.target, status)


class InferProtocol(HttpConnection):
    """A connection. Use `with_calls` to get the class that uvicorn instantiates."""

    calls: InferCalls
    heads: KnownHeads
    _memory: ClientMemory | None = None
    _unsent_memory: Reservation | None = None  # for what the client has not read

    @classmethod
    def with_calls(cls, calls: InferCalls) -> type[InferProtocol]:
        """Return this protocol bound to the calls of a frontend."""
        return type("InferProtocol", (cls,), {"calls": calls, "heads": KnownHeads()})

    def data_received(self, data: bytes) -> None:
        """Take what came: a request whose head is known goes round the parser, which stands between two requests and need not know."""
        fresh = not (self.midway or self.refuses) and (self.cycle is None or self.cycle.response_complete)
        known = self.heads.match(data) if fresh else None
        if known is not None:
            self._start_known(*known, data)
            return
        super().data_received(data)
        cycle: Any = self.cycle
        if self.midway and not self.in_head and type(cycle) is InferCycle and not cycle.judged:
            cycle.judge()
        if fresh and type(cycle) is InferCycle and cycle.keep_alive and not self.midway:
            self.heads.learn(data, cycle.target, self.headers)

    def _start_known(self, head: Head, start: int, data: bytes) -> None:
        began_ns = now_ns() if self.calls.tracer.active else 0
        cycle: Any = InferCycle(self, head.target, head.headers, True, began_ns)
        self.cycle = cycle
        cycle.active = cycle.complete = True
        if len(data) > _UNCOUNTED:
            cycle.take(data[start:])
            cycle.start_if_ready()
        else:
            cycle.start(data[start:])

    def client_memory(self) -> ClientMemory:
        """Return the account of this connection."""
        if self._memory is None:
            # A connection in memory is one request of a client that has an account already.
            self._memory = self.transport.get_extra_info("client_memory") or self.calls.memory.client()
        return self._memory

    def reserve_reply(self, reply: Reply) -> Reply:
        """Reserve what the client may leave unread of a reply, which is about to be written; return an error in its place where there is no room."""
        memory = self._unsent_memory
        if memory is None:
            memory = self.client_memory().reservation()
        try:
            memory.require(self.transport.get_write_buffer_size() + reply.size)
        except TritonError as error:
            return encode_error(error)
        self._unsent_memory = memory
        return reply

    def pause_writing(self) -> None:
        """Reserve what the client does not read; close a connection for which there is no room."""
        super().pause_writing()
        if self._unsent_memory is None:
            self._unsent_memory = memory = self.client_memory().reservation()
            if not memory.grow(self.transport.get_write_buffer_size()):
                self.transport.abort()

    def resume_writing(self) -> None:
        """Release it: the client has read."""
        super().resume_writing()
        self._unsent_memory = None

    def connection_lost(self, exc: Exception | None) -> None:
        """Release what was reserved for the client."""
        self._unsent_memory = None
        super().connection_lost(exc)

    def visit_of(self, target: Target) -> Visit | None:
        """Return what is known of the caller of an inference call whose head is complete; None where everybody may call."""
        return None

    def on_headers_complete(self) -> None:
        """Choose the way of the request."""
        if not self.judge_head():
            return
        url = self.url
        target = None
        if b"/infer" in url and self.parser.get_method() == b"POST":
            target = infer_target(url.partition(b"?")[0].decode("latin-1"))
        if target is None:
            self.begin_asgi()
            return
        before: Any = self.cycle
        keep_alive = self.parser.should_keep_alive()
        began_ns = now_ns() if self.calls.tracer.active else 0
        cycle: Any = InferCycle(self, target, dict(self.headers), keep_alive, began_ns)
        cycle.visit = self.visit_of(target)
        if cycle.visit is not None and cycle.visit.refusal is not None:
            cycle.refusal = encode_error(cycle.visit.refusal)
        self.cycle = cycle
        if keep_alive and self.parser.get_http_version() == "1.0":
            cycle.ending = _GOES_ON_OLD
        if before is None or before.response_complete:
            self._activate(cycle)
        else:
            self.wait_in_pipeline(before, cycle)

    def _activate(self, cycle: InferCycle) -> None:
        cycle.active = True
        if self.expect_100_continue and not cycle.complete:
            if not cycle.judged:
                cycle.judge()
            if cycle.refusal is None:
                self.transport.write(_CONTINUE)
        cycle.answer_refusal()

    def on_body(self, body: bytes) -> None:
        """Collect; an inference call needs its whole body at once, so that reading never pauses for it."""
        self.moved()
        cycle: Any = self.cycle
        if type(cycle) is not InferCycle:
            super().on_body(body)
        elif not cycle.response_complete:
            cycle.take(body)
            if len(cycle.parts) > MAX_CHUNKS and cycle.headers.get(b"transfer-encoding") == b"chunked":
                self._refuse_chunks(cycle)

    @staticmethod
    def _refuse_chunks(cycle: InferCycle) -> None:
        body = error_body(_TOO_MANY_CHUNKS)
        cycle.refusal = Reply(400, [JSON_TYPE, (b"content-length", b"%d" % len(body))], (body,), len(body))
        cycle.judge()

    def on_message_complete(self) -> None:
        """Start the call whose body is now complete."""
        if self.in_head:
            return  # it is going to be parsed again
        self.midway = False
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
