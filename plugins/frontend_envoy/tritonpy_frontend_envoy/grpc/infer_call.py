"""The short way of ModelInfer through Envoy."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from tritonpy_frontend_envoy.grpc.replies import END, OK, START, chunk, only_trailers, start, whole
from tritonpy_frontend_grpc.wire.frames import prefix
from tritonpy_frontend_grpc.wire.infer_call import CarriedInferCall
from tritonpy_frontend_grpc.wire.replies import head_of

if TYPE_CHECKING:
    from tritonpy_frontend_envoy.embedded.reception import Surroundings
    from tritonpy_frontend_grpc.service import InferenceService
    from tritonpy_frontend_grpc.wire.head import Head, Headers
    from tritonpy_frontend_grpc.wire.serving import Serving

_ONE_PIECE = 64 * 1024  # a larger answer is sent after its prefix and not joined with it: that would copy it


class EnvoyInferCall(CarriedInferCall):
    """It is what pyvoy's `receive` gives its events to.

    One whose body was asked for before anybody looked at its head knows whom to ask: `unadmitted` does it when the first part is there.
    """

    def __init__(
        self,
        service: InferenceService,
        around: Surroundings,
        head: Head,
        receive: Any,
        send: Any,
        unadmitted: Serving | None = None,
    ) -> None:
        super().__init__(service, head)
        self._unadmitted = unadmitted
        self._around = around
        self._receive = receive
        self._send = send

    def read(self) -> None:
        """Ask for the next part of the body."""
        self._around.ask_for(self.missing, self.look)

    def set_result(self, event: Mapping[str, Any]) -> None:
        """Take what pyvoy has: a part of the body, or that the client left."""
        unadmitted, self._unadmitted = self._unadmitted, None
        if event["type"] != "http.request":
            self.leave()
        elif unadmitted is None or unadmitted.admit(self):
            self.take(event["body"], event["more_body"])

    def cancelled(self) -> bool:
        """Say that the event is wanted."""
        return False

    def look(self) -> None:
        """Ask whether the client is there, and for what it has sent."""
        self._around.next_future.receive(self._receive, self)

    def begun(self) -> None:
        """Look after the client from now on."""
        self._begun = True
        self._around.patrol.watch(self)

    def send_answer(self, message: bytes) -> None:
        send = self._send
        send(START)
        if len(message) <= _ONE_PIECE:
            send(whole(message))
        else:
            self._around.next_future.waiter = NOBODY
            send(chunk(prefix(message), last=False))
            send(chunk(message, last=True))
        send(OK)

    def send_packed(self, encoding: str, frame: bytes) -> None:
        self._send(start(head_of(encoding)))
        self._send(chunk(frame, last=True))
        self._send(OK)

    def send_refusal(self, trailers: Headers) -> None:
        self._send(only_trailers(trailers))
        self._send(END)

    def done(self) -> None:
        self._around.patrol.forget(self)
        if self._expiry is not None or self._callbacks:
            super().done()


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
