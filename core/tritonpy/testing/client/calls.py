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
Outcome = InferResult | InferenceServerException
log = logging.getLogger("tritonpy.testing")


class InferAsyncRequest(Sink):
    """A request whose one answer is awaited, or passed to `callback` by the thread that answers.

    After `client_timeout` seconds without one the request is cancelled, and the answer is InferenceServerException.
    """

    def __init__(self, callback: Callback | None = None, client_timeout: float | None = None) -> None:
        self._callback = callback
        self._answered = threading.Event()
        self._settling = threading.Lock()
        self._request: InferRequest | None = None
        self._outcome: Outcome | None = None
        self._timer: threading.Timer | None = None
        if client_timeout is not None:
            self._timer = threading.Timer(client_timeout, self.expire)
            self._timer.daemon = True

    def send(self, engine: Engine, request: InferRequest) -> None:
        """Hand `request` to the engine. Raises InferenceServerException where it is refused."""
        self._request = request
        if self._timer is not None:
            self._timer.start()
        try:
            engine.infer(request)
        except TritonError as error:
            self._stop_timer()
            raise InferenceServerException.of(error) from error

    def put(self, request: InferRequest, response: InferResponse) -> None:
        self._settle(_outcome(response, stream=False))

    def wait(self, timeout: float | None) -> bool:
        """Wait for the answer, at most `timeout` seconds (None: for ever); say whether it came."""
        return self._answered.wait(timeout)

    def get_result(self, block: bool = True, timeout: float | None = None) -> InferResult:
        """Return the result. Raises InferenceServerException for an error, or where there is none within `timeout` seconds."""
        if not self.wait(timeout if block else 0):
            raise InferenceServerException("failed to obtain inference response")
        assert self._outcome is not None
        if isinstance(self._outcome, InferenceServerException):
            raise self._outcome
        return self._outcome

    def cancel(self) -> None:
        """Ask the server to stop; `get_result` then raises, unless the answer came first."""
        if self._request is not None:
            self._request.cancel()

    def expire(self) -> None:
        """Cancel the request because its time is over, unless the answer came first."""
        if self._settle(InferenceServerException("Deadline Exceeded", "DEADLINE_EXCEEDED")):
            self.cancel()

    def _settle(self, outcome: Outcome) -> bool:
        """Take what comes first, the answer or the end of the time; say whether this did."""
        with self._settling:
            if self._outcome is not None:
                return False
            self._outcome = outcome
        self._stop_timer()
        self._answered.set()
        if self._callback is not None:
            _deliver(self._callback, outcome)
        return True

    def _stop_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()


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
            _deliver(self._callback, _outcome(response, stream=True))
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


def _outcome(response: InferResponse, stream: bool) -> Outcome:
    if response.error is None:
        return InferResult(response, stream)
    failure = InferenceServerException.of(response.error)
    failure.__cause__ = response.error
    return failure


def _deliver(callback: Callback, outcome: Outcome) -> None:
    try:
        if isinstance(outcome, InferenceServerException):
            callback(result=None, error=outcome)
        else:
            callback(result=outcome, error=None)
    except Exception:
        log.exception("a client's callback raised")
