"""Requests in flight: one request with one response, and a stream of requests."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from typing import Any

from tritonpy import Engine, InferRequest, InferResponse, TritonError
from tritonpy.frontend import Sink
from tritonpy_testing.client.exception import InferenceServerException
from tritonpy_testing.client.infer_result import InferResult

Callback = Callable[..., Any]  # called as callback(result=…, error=…), one of them None
Outcome = InferResult | InferenceServerException
log = logging.getLogger("tritonpy_testing")


class InferAsyncRequest(Sink):
    """A request with one response, which callers wait for or get through `callback`.

    The thread that responds runs `callback`. After `client_timeout` seconds the request is
    cancelled, and its outcome is InferenceServerException.
    """

    def __init__(
        self, callback: Callback | None = None, client_timeout: float | None = None
    ) -> None:
        self._callback = callback
        self._done = threading.Event()
        self._settling = threading.Lock()
        self._request: InferRequest | None = None
        self._outcome: Outcome | None = None
        self._timer: threading.Timer | None = None
        if client_timeout is not None:
            self._timer = threading.Timer(client_timeout, self.expire)
            self._timer.daemon = True

    def send(self, engine: Engine, request: InferRequest) -> None:
        """Send `request` to the engine.

        Raises InferenceServerException if the engine refuses it.
        """
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
        """Wait up to `timeout` seconds (None: no limit) and return whether the response arrived."""
        return self._done.wait(timeout)

    def get_result(self, block: bool = True, timeout: float | None = None) -> InferResult:
        """Return the result.

        Raises InferenceServerException for an error, or if no response arrives within `timeout`
        seconds.
        """
        if not self.wait(timeout if block else 0):
            raise InferenceServerException("failed to obtain inference response")
        assert self._outcome is not None
        if isinstance(self._outcome, InferenceServerException):
            raise self._outcome
        return self._outcome

    def cancel(self) -> None:
        """Cancel the request. `get_result` then raises, unless the response came first."""
        if self._request is not None:
            self._request.cancel()

    def expire(self) -> None:
        """Cancel the request because its timeout passed, unless the response came first."""
        if self._settle(InferenceServerException("Deadline Exceeded", "DEADLINE_EXCEEDED")):
            self.cancel()

    def _settle(self, outcome: Outcome) -> bool:
        """Set the outcome unless it is set: response or timeout.

        Return whether this call set it.
        """
        with self._settling:
            if self._outcome is not None:
                return False
            self._outcome = outcome
        self._stop_timer()
        self._done.set()
        if self._callback is not None:
            _deliver(self._callback, outcome)
        return True

    def _stop_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()


class Stream(Sink):
    """The requests in flight of one stream. Every response goes to `callback` as it arrives."""

    def __init__(self, callback: Callback) -> None:
        self._callback = callback
        self._changed = threading.Condition()
        self._in_flight: list[InferRequest] = []

    def send(self, engine: Engine, request: InferRequest) -> None:
        """Send `request` to the engine. A refusal goes to the callback."""
        with self._changed:
            self._in_flight.append(request)
        try:
            engine.infer(request)
        except TritonError as error:
            self.put(request, InferResponse.failed(request, error))

    def put(self, request: InferRequest, response: InferResponse) -> None:
        # the tag: whether the client receives empty final responses
        if not response.empty or request.tag:
            _deliver(self._callback, _outcome(response, stream=True))
        if response.final:
            with self._changed:
                self._in_flight.remove(request)
                self._changed.notify_all()

    def stop(self, cancel_requests: bool) -> None:
        """Return when every request has its final response.

        With `cancel_requests`, cancel them first.
        """
        with self._changed:
            waiting = list(self._in_flight)
        if cancel_requests:
            for request in waiting:
                request.cancel()
        with self._changed:
            self._changed.wait_for(lambda: not self._in_flight)


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
