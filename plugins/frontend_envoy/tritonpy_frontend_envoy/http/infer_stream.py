"""The short way of an inference call through Envoy: no task, no coroutine, no future of the event loop."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from tritonpy import now_ns
from tritonpy_frontend_envoy.embedded.reception import TOO_SLOW, Surroundings, shown_client
from tritonpy_frontend_http.body_size import unlimited
from tritonpy_frontend_http.encode import JSON_TYPE, Reply
from tritonpy_frontend_http.errors import error_body
from tritonpy_frontend_http.infer_calls import Call, InferCalls, Target
from tritonpy_frontend_http.telling import tells

if TYPE_CHECKING:
    from tritonpy_frontend_http.access import Visit

_TOO_SLOW = error_body(TOO_SLOW)


class InferStream:
    """One call: reads its body, hands it over, and sends the reply. It is what pyvoy's `receive` gives its messages to."""

    __slots__ = (
        "_around", "_began_ns", "_call", "_calls", "_client", "_headers", "_late", "_moved", "_oversize", "_parts", "_receive",
        "_replied", "_send", "_size", "_target", "_visit", "watched",
    )  # fmt: skip

    def __init__(
        self,
        calls: InferCalls,
        surroundings: Surroundings,
        client: tuple[str, int] | None,
        target: Target,
        headers: Mapping[bytes, bytes],
        visit: Visit | None,
        receive: Any,
        send: Any,
    ) -> None:
        self._calls = calls
        self._around = surroundings
        self._client = client
        self._target = target
        self._headers = headers
        self._visit = visit
        self._receive = receive
        self._send = send
        self._parts: list[bytes] = []
        self._size = 0
        self._oversize = False
        self._moved = 0.0  # when the last part came, or its absence was first noticed
        self._late = False  # it was already when it was looked at last
        self._call: Call | None = None
        self._replied = False
        self.watched = False  # the patrol looks at it, or has
        self._began_ns = now_ns() if calls.tracer.active else 0

    def begin(self) -> None:
        """Ask for the body; a client that sends none of it is noticed."""
        self._watch()
        self._read()

    def begin_ahead(self) -> Mapping[str, Any] | None:
        """Do the same from any thread; return what is at hand already, which the event loop has to give to `set_result`."""
        at_hand: Mapping[str, Any] | None = self._around.next_future.ask(self._receive, self)
        if at_hand is None:
            self._around.patrol.expect(self)
        return at_hand

    def set_result(self, message: Mapping[str, Any]) -> None:
        """Take what pyvoy has: a part of the body, or that the client left."""
        if not self.watched:
            self._watch()
        if message["type"] != "http.request":
            self._left()
        elif self._call is None and not self._replied:
            if not message["more_body"] and not self._size:
                self._start(message["body"])
            else:
                self._take(message["body"], more=message["more_body"])

    def cancelled(self) -> bool:
        """Say that the message is wanted."""
        return False

    def look(self) -> None:
        """Ask whether the client is there; one that sends its body has some time."""
        if self._call is not None:
            self._read()
        elif not self._moved:
            self._moved = time.monotonic()
        elif time.monotonic() - self._moved > self._around.stall_s:
            self._stand_still()

    def _stand_still(self) -> None:
        if not self._late:
            self._late = True  # what came while the event loop was busy is heard of before the next look
            return
        self._calls.log.warning("refused a request from %s: %s", shown_client(self._client), TOO_SLOW)
        headers = [JSON_TYPE, (b"content-length", b"%d" % len(_TOO_SLOW)), (b"connection", b"close")]
        self._reply(Reply(408, headers, (_TOO_SLOW,), len(_TOO_SLOW)))

    def _watch(self) -> None:
        self.watched = True
        self._around.patrol.watch(self)

    def _read(self) -> None:
        self._around.next_future.receive(self._receive, self)

    def _take(self, part: bytes, *, more: bool) -> None:
        self._moved, self._late = time.monotonic(), False
        self._size += len(part)
        limit = self._calls.limit
        if self._visit is not None and self._visit.refusal is not None:
            pass  # nobody will read it
        elif self._size > limit and not unlimited(self._headers, limit):
            self._oversize, self._parts = True, []
        else:
            self._parts.append(part)
        if more:
            announced = int(self._headers.get(b"content-length", b"0"))
            self._around.ask_for(announced - self._size, self._read)
        else:
            parts, self._parts = self._parts, []
            self._start(b"".join(parts))

    def _start(self, body: bytes) -> None:
        call = self._call = Call(self._finish, self._visit)
        if self._oversize:
            self._calls.refuse_size(call, self._target, self._headers, self._size)
        else:
            if self._began_ns:
                call.received = self._began_ns, now_ns()
            self._calls.start(call, self._target, self._headers, body)

    def _left(self) -> None:
        self._around.patrol.forget(self)
        if self._call is not None:
            self._call.cancel()
        self._replied = True
        self._parts = []

    def _finish(self, reply: Reply) -> None:
        self._call = None
        if tells(self._calls.log):
            from tritonpy_frontend_http.told_requests import tell_infer

            tell_infer(self._calls.log, self._target, reply.status)
        if not self._replied:
            self._reply(reply)

    def _reply(self, reply: Reply) -> None:
        self._replied = True
        self._around.patrol.forget(self)
        parts = reply.parts
        first = parts[0] if parts else b""
        # pyvoy takes bytes alone, and keeps a copy
        body = first if len(parts) == 1 and type(first) is bytes else b"".join(parts)
        self._send({"type": "http.response.start", "status": reply.status, "headers": reply.headers})
        self._send({"type": "http.response.body", "body": body})
