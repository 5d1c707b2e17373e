"""Requests in flight: one that is awaited, and a stream of them."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from typing import Any

from tritonpy.api.engine import Engine
from tritonpy.errors import TritonError
from tritonpy.testing.client.exception import InferenceServerException
from tritonpy.testing.client.infer_result import InferResult
from tritonpy.types import InferRequest, InferResponse, Sink

Callback = Callable[..., Any]  # called as callback(result=…, error=…), one of them None
log = logging.getLogger("tritonpy.testing")


class InferAsyncRequest(Sink):
    """A request whose one answer is awaited, or passed to `callback` by the thread that answers."""

    def __init__(self, callback: Callback | None = None) -> None:
        self._callback = callback
        self._answered = threading.Event()
        self._request: InferRequest | None = None
        self._response: InferResponse | None = None

    def send(self, engine: Engine, request: InferRequest) -> None:
        """Hand `request` to the engine. Raises InferenceServerException where it is refused."""
        self._request = request
        try:
            engine.infer(request)
        except TritonError as error:
            raise InferenceServerException.of(error) from error

    def put(self, request: InferRequest, response: InferResponse) -> None:
        self._response = response
        self._answered.set()
        if self._callback is not None:
            _deliver(self._callback, response, stream=False)

    def wait(self, timeout: float | None) -> bool:
        """Wait for the answer, at most `timeout` seconds (None: for ever); say whether it came."""
        return self._answered.wait(timeout)

    def get_result(self, block: bool = True, timeout: float | None = None) -> InferResult:
        """Return the result. Raises InferenceServerException for an error, or where there is none within `timeout` seconds."""
        if not self.wait(timeout if block else 0):
            raise InferenceServerException("failed to obtain inference response")
        assert self._response is not None
        if self._response.error is not None:
            raise InferenceServerException.of(self._response.error) from self._response.error
        return InferResult(self._response)

    def cancel(self) -> None:
        """Ask the server to stop; `get_result` then raises, unless the answer came first."""
        if self._request is not None:
            self._request.cancel()


class Stream(Sink):
    """The open requests of one stream; every answer goes to `callback` at once, in the order in which models answer."""

    def __init__(self, callback: Callback) -> None:
        self._callback = callback
        self._changed = threading.Condition()
        self._open: list[InferRequest] = []

    def send(self, engine: Engine, request: InferRequest) -> None:
        """Hand `request` to the engine; a refusal goes to the callback."""
        with self._changed:
            self._open.append(request)
        try:
            engine.infer(request)
        except TritonError as error:
            self.put(request, InferResponse.failed(request, error))

    def put(self, request: InferRequest, response: InferResponse) -> None:
        if not response.empty or request.tag:  # the tag says whether the client wants the empty final answer
            _deliver(self._callback, response, stream=True)
        if response.final:
            with self._changed:
                self._open.remove(request)
                self._changed.notify_all()

    def stop(self, cancel_requests: bool) -> None:
        """Return when every request has its final answer; cancel them first where asked."""
        with self._changed:
            waiting = list(self._open)
        if cancel_requests:
            for request in waiting:
                request.cancel()
        with self._changed:
            self._changed.wait_for(lambda: not self._open)


def _deliver(callback: Callback, response: InferResponse, stream: bool) -> None:
    try:
        if response.error is not None:
            callback(result=None, error=InferenceServerException.of(response.error))
        else:
            callback(result=InferResult(response, stream), error=None)
    except Exception:
        log.exception("a client's callback raised")
