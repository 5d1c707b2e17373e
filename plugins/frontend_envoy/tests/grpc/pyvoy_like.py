"""A stream as pyvoy brings it to an application, without Envoy: the same order of events, futures and faults."""

from __future__ import annotations

import asyncio
import logging
from math import inf
from typing import Any

from plugins.frontend_grpc.tests.fake_engine import FakeEngine
from plugins.frontend_grpc.tests.wire.scenarios.answered_stream import AnsweredStream
from plugins.frontend_grpc.tests.wire.scenarios.frames import frame, headers_of, path_of
from tritonpy import FrontendContext, Tracer
from tritonpy_frontend_envoy.embedded.loops import ANSWERED, NextFuture
from tritonpy_frontend_envoy.embedded.patrol import Patrol
from tritonpy_frontend_envoy.embedded.reception import Surroundings
from tritonpy_frontend_envoy.grpc.application import GrpcApplication
from tritonpy_frontend_grpc.call_options import CallOptions


class Stream(AnsweredStream):
    """One request; `body` is what came so far, `ended` says that no more comes."""

    def __init__(self, server: Server, scope: dict[str, Any], body: bytes, ended: bool) -> None:
        super().__init__()
        self.task: asyncio.Task[None] | None = None
        self._server = server
        self._scope = scope
        self._body = body
        self._ended = ended
        self.asked: list[Any] = []  # by the application, and not given yet
        self.sending: list[Any] = []  # what Envoy has not taken yet
        self._next = "http.response.start"
        self._has_trailers = False

    def begin(self) -> Stream:
        application = self._server.application
        if application.ask_ahead(self._scope, self.receive, self.send):
            return self
        answering = application(self._scope, self.receive, self.send)
        if answering is not ANSWERED:
            self.task = asyncio.create_task(answering)
        return self

    def feed(self, body: bytes, *, ended: bool = False) -> None:
        """Let more of the body come."""
        self._body += body
        self._ended = self._ended or ended
        self._give()

    def leave(self) -> None:
        """Let the client go."""
        self.over.set()
        for future in self.sending:
            self._server.loop.call_soon(future.set_exception, OSError("gone"))
        self.sending.clear()
        self._give()

    def receive(self) -> Any:
        future = self._future()
        self.asked.append(future)
        self._give()
        return future

    def send(self, event: Any) -> Any:
        if self.over.is_set():
            return _fault(OSError("gone"))
        assert event["type"] == self._next, f"{event} where {self._next} is due"
        kind = event["type"].rpartition(".")[2]
        return getattr(self, f"_take_{kind}")(event)

    def _future(self) -> Any:
        next_future = self._server.around.next_future
        future, next_future.waiter = next_future.waiter or self._server.loop.create_future(), None
        return future

    def _give(self) -> None:
        while self.asked and (self._body or self._ended or self.over.is_set()):
            body, self._body = self._body, b""
            event = {"type": "http.request", "body": body, "more_body": not self._ended}
            self._server.loop.call_soon(
                self.asked.pop(0).set_result, {"type": "http.disconnect"} if self.over.is_set() else event
            )

    def _take_start(self, event: Any) -> Any:
        self.status, self.headers = event["status"], dict(event["headers"])
        self._has_trailers = event.get("trailers", False)
        self._next = "http.response.body"
        return _nothing()

    def _take_body(self, event: Any) -> Any:
        assert type(event.get("body", b"")) is bytes, "pyvoy takes nothing else"
        self._frames.feed(event.get("body", b""))
        if event.get("more_body"):
            future = self._future()
            self.sending.append(future)
            if not self.held_up:
                self.read_on()
            return future
        self._next = "http.response.trailers"
        if not self._has_trailers:
            self._close()
        return _nothing()

    def read_on(self) -> None:
        """Let Envoy take what waits."""
        self.held_up = False
        for future in self.sending:
            self._server.loop.call_soon(_set, future)
        self.sending.clear()

    def _take_trailers(self, event: Any) -> Any:
        self.trailers = dict(event["headers"])
        self._close()
        return _nothing()

    def _close(self) -> None:
        self._next = "nothing"
        self.over.set()
        self._give()


def _set(future: Any) -> None:
    if not future.cancelled():
        future.set_result(None)


class _Awaited:
    def __init__(self, error: Exception | None) -> None:
        self._error = error

    def __await__(self) -> Any:
        if self._error is not None:
            raise self._error
        return
        yield


def _nothing() -> Any:
    return _Awaited(None)


def _fault(error: Exception) -> Any:
    return _Awaited(error)


class Server:
    """The application on a fake engine; made on the running event loop."""

    def __init__(
        self, engine: Any = None, gatekeeper: Any = None, tracer: Tracer | None = None, **options: Any
    ) -> None:
        self.loop = asyncio.get_running_loop()
        self.engine = engine or FakeEngine()
        self.patrol = Patrol(self.loop)
        self.around = Surroundings(self.patrol, NextFuture(), inf)
        self.context = FrontendContext("127.0.0.1", logging.getLogger("tritonpy.grpc"), gatekeeper, tracer or Tracer())
        self.application = GrpcApplication(self.engine, CallOptions(**options), self.context, self.around)
        self.serving = self.application.serving

    def at_rest(self) -> bool:
        """Say whether nobody looks after a call any more."""
        return not self.patrol._old and not self.patrol._young

    def stream(
        self,
        name: str,
        *messages: bytes,
        body: bytes = b"",
        ended: bool = True,
        metadata: tuple[tuple[bytes, bytes], ...] = (),
        method: str = "POST",
        **headers: bytes,
    ) -> Stream:
        """Begin a call with those messages and headers."""
        scope = {"type": "http", "method": method, "path": path_of(name), "headers": headers_of(headers, metadata)}
        return Stream(self, scope, body + b"".join(map(frame, messages)), ended).begin()
