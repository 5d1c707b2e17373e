"""The short way of ModelInfer through Envoy: no task, no coroutine, no future of the event loop."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from tritonpy import Internal, TritonError, Unsupported
from tritonpy_frontend_envoy.grpc.carried_call import CANCELLED, CarriedCall
from tritonpy_frontend_envoy.grpc.compression import framed
from tritonpy_frontend_envoy.grpc.frames import PREFIX, Frame, Frames, prefix
from tritonpy_frontend_envoy.grpc.replies import END, OK, START, chunk, failed, only_trailers, start
from tritonpy_frontend_grpc.call import InferCall
from tritonpy_frontend_grpc.deadline import DeadlineExceeded

if TYPE_CHECKING:
    from tritonpy_frontend_envoy.embedded.reception import Surroundings
    from tritonpy_frontend_envoy.grpc.compression import Compression
    from tritonpy_frontend_grpc.service import InferenceService

_ONE_PIECE = 64 * 1024  # a larger answer is sent after its prefix and not joined with it: that would copy it


class EnvoyInferCall(CarriedCall, InferCall):
    """One call: reads its message, hands it over, and sends the answer. It is what pyvoy's `receive` gives its events to."""

    _frames: Frames | None = None
    _begun = False  # the message is the service's
    _finishing: asyncio.Task[None] | None = None

    def __init__(
        self,
        service: InferenceService,
        around: Surroundings,
        scope: Any,
        headers: dict[bytes, bytes],
        receive: Any,
        send: Any,
    ) -> None:
        self.over = False
        self.request = None
        self.scope = scope
        self.headers = headers
        self._service = service
        self._around = around
        self._receive = receive
        self._send = send

    def read(self) -> None:
        """Ask for the next part of the body."""
        self._around.next_future.receive(self._receive, self)

    def set_result(self, event: Mapping[str, Any]) -> None:
        """Take what pyvoy has: a part of the body, or that the client left."""
        if self.over:
            return
        if event["type"] != "http.request":
            self._leave()
        elif not self._begun:
            body = event["body"]
            if self._frames is None and PREFIX.size + int.from_bytes(body[1:5], "big") == len(body):
                self._begin(Frame(body[0], body[5:]))
            else:
                self._take(body, more=event["more_body"])

    def cancelled(self) -> bool:
        """Say that the event is wanted."""
        return False

    def look(self) -> None:
        """Ask whether the client is there."""
        self.read()

    def expire(self) -> None:
        if not self.over:
            self._stop()
            self.fail(DeadlineExceeded("Deadline Exceeded"))

    def finish(self, answer: bytes | TritonError) -> None:
        if not isinstance(answer, bytes):
            self.fail(answer)
        elif self.compression is not None:
            self._finishing = asyncio.create_task(self._finish_compressed(answer, self.compression))
        else:
            send = self._send
            send(START)
            if len(answer) <= _ONE_PIECE:
                send(chunk(prefix(answer) + answer, last=True))
            else:
                self._around.next_future.waiter = NOBODY
                send(chunk(prefix(answer), last=False))
                send(chunk(answer, last=True))
            send(OK)
            self.done()

    def fail(self, error: TritonError) -> None:
        """Send how the call ended."""
        self.over = True
        self.status, headers = failed(error)
        self._send(only_trailers(headers))
        self._send(END)
        self.done()

    def done(self) -> None:
        self._around.patrol.forget(self)
        super().done()

    def _take(self, part: bytes, *, more: bool) -> None:
        if self._frames is None:
            self._frames = Frames()
        self._frames.feed(part)
        frame = self._frames.next()
        if frame is not None and self._frames.partial:
            self.fail(Unsupported("a call of this method has one message, and this one has more"))
        elif frame is not None:
            self._frames = None
            self._begin(frame)
        elif more:
            self.read()
        elif self._frames.partial:
            self.fail(Internal("the request ends in the middle of a message"))
        else:
            self.fail(Unsupported("a call of this method has one message, and this one has none"))

    def _begin(self, frame: Frame) -> None:
        try:
            message = self.unframed(frame)
        except TritonError as error:
            self.fail(error)
            return
        self._begun = True
        self._around.patrol.watch(self)
        self._service.infer(message, self)

    def _leave(self) -> None:
        self._stop()
        self.status = CANCELLED
        self.done()

    def _stop(self) -> None:
        if self._begun:
            self._service.cancel(self)
        self.over = True

    async def _finish_compressed(self, answer: bytes, compression: Compression) -> None:
        frame = await framed(answer, compression)
        self._send(start(compression.name))
        self._send(chunk(frame, last=True))
        self._send(OK)
        self.done()


class _Nobody:
    """Waits for what nobody waits for: that a part of an answer was sent."""

    def set_result(self, _result: object) -> None:
        """Do nothing."""

    def set_exception(self, _error: object) -> None:
        """Do nothing: that the client left is heard of elsewhere."""

    def cancelled(self) -> bool:
        """Say that it is wanted."""
        return False


NOBODY = _Nobody()
