"""HTTP calls behind Envoy: inference the short way, everything else as ASGI."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from typing import Any

from tritonpy import incident
from tritonpy_frontend_envoy.embedded.loops import ANSWERED, call_on
from tritonpy_frontend_envoy.embedded.reception import TOO_SLOW, Reception, Surroundings, shown_client
from tritonpy_frontend_envoy.embedded.switch import Application
from tritonpy_frontend_envoy.http.infer_stream import InferStream
from tritonpy_frontend_http.composition import Composition
from tritonpy_frontend_http.errors import error_body
from tritonpy_frontend_http.infer_path import infer_target

_JSON = (b"content-type", b"application/json")


class HttpApplication(Application):
    """The application of one frontend, on the event loop that it is made on."""

    def __init__(self, composition: Composition, surroundings: Surroundings, log: logging.Logger) -> None:
        self._calls = composition.calls
        self._access = composition.access
        self._application = composition.application
        self._around = surroundings
        self._log = log
        self._loop = asyncio.get_running_loop()
        self._open = 0
        self._idle = asyncio.Event()
        self._idle.set()

    def __call__(self, scope: Any, receive: Any, send: Any) -> Any:
        """Begin a call; return ANSWERED, or a coroutine."""
        stream = self._inference(scope, receive, send)
        if stream is not None:
            stream.begin()
            return ANSWERED
        reception = Reception(receive, self._around)
        return self._answer(scope, reception, _Sending(send, reception))

    def ask_ahead(self, scope: Any, receive: Any, send: Any) -> bool:
        """Begin an inference whose head nobody has to look at before its body comes: who calls is asked first of all."""
        if self._access is not None or (stream := self._inference(scope, receive, send)) is None:
            return False
        at_hand = stream.begin_ahead()
        if at_hand is not None:
            call_on(self._loop, stream.set_result, at_hand)
        return True

    async def idle(self) -> None:
        """Return when no call is being answered, but those of inference, which others count."""
        await self._idle.wait()

    def _inference(self, scope: Any, receive: Any, send: Any) -> InferStream | None:
        """Return the call that a request is, None where it is no inference."""
        if scope["method"] != "POST" or (target := infer_target(scope["raw_path"].decode("latin-1"))) is None:
            return None
        headers = scope["headers"]
        visit = None if self._access is None else self._access.visit(target[0], headers)
        return InferStream(self._calls, self._around, scope["client"], target, dict(headers), visit, receive, send)

    async def _answer(self, scope: Any, receive: Reception, send: _Sending) -> None:
        self._open += 1
        self._idle.clear()
        scope["state"] = {}
        try:
            await self._application(scope, receive, send)
        except Exception as error:
            failure = incident(self._log, scope["path"], error)
            await send.end(500, failure.message)
        finally:
            self._open -= 1
            if not self._open:
                self._idle.set()
        if receive.stalled:
            self._log.warning("refused a request from %s: %s", shown_client(scope["client"]), TOO_SLOW)
            await send.end(408, TOO_SLOW)


class _Sending:
    """`send` of one request, to which a client that left is no error: its call hears of it elsewhere.

    What is answered to one whose body stood still is not sent: the application believes that it left, and `end` says what was the matter.
    """

    def __init__(self, send: Any, reception: Reception) -> None:
        self._begun = False
        self._send = send
        self._reception = reception

    async def __call__(self, message: Any) -> None:
        """Send a message."""
        if not self._reception.stalled:
            await self._put(message)

    async def end(self, status: int, text: str) -> None:
        """Answer with an error and end the connection, where no answer has begun."""
        if self._begun:
            return
        body = error_body(text)
        headers = [_JSON, (b"content-length", b"%d" % len(body)), (b"connection", b"close")]
        await self._put({"type": "http.response.start", "status": status, "headers": headers})
        await self._put({"type": "http.response.body", "body": body})

    async def _put(self, message: Any) -> None:
        self._begun = True
        with contextlib.suppress(OSError):  # pyvoy's word for a client that left
            await self._send(message)
