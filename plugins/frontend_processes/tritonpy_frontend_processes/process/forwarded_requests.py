"""Requests of this process that the engine's process executes."""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Sequence
from itertools import count

from tritonpy import InferRequest, InferResponse, Internal, TritonError
from tritonpy.frontend import internal_error
from tritonpy_engine_rpc.connection import Connection
from tritonpy_frontend_processes import kinds
from tritonpy_frontend_processes.model_ids import ModelIdEncoder
from tritonpy_frontend_processes.process.tracer import FrontendTracer
from tritonpy_frontend_processes.requests_frame import write_requests
from tritonpy_frontend_processes.responses_frame import WORDS, NumberedResponse, read_responses
from tritonpy_ipc import Frame
from tritonpy_ipc.credit_counter import CreditCounter

log = logging.getLogger("tritonpy.server")
# Bytes of tensors in one frame, except for those of its last request. All requests of a frame share
# a memory segment until the last one ends.
_MAX_BYTES = 1 << 23


class ForwardedRequests:
    """Sends all requests of one event-loop iteration in one frame.

    `send` and `cancel` may be called in any thread, other methods run on the event loop.
    """

    def __init__(
        self, loop: asyncio.AbstractEventLoop, connection: Connection, tracer: FrontendTracer
    ) -> None:
        self._loop = loop
        self._connection = connection
        self._tracer = tracer
        self._model_ids = ModelIdEncoder()
        self._numbers = count(1)
        self._waiting: deque[tuple[int, InferRequest]] = deque()
        self._cancelled: deque[int] = deque()
        self._woken = False
        self._in_flight: dict[int, InferRequest] = {}
        # requests that have responses, but not yet the final one
        self._taken: dict[int, CreditCounter] = {}

    def send(self, request: InferRequest) -> None:
        """Take ownership of a request. Its responses go to its sink."""
        number = next(self._numbers)
        request.owner = _Owner(self, number)
        self._waiting.append((number, request))
        if not self._woken:
            self._wake()

    def cancel(self, number: int) -> None:
        """Forward a cancellation, from any thread."""
        self._cancelled.append(number)
        if not self._woken:
            self._wake()

    def handle_responses(self, frame: Frame) -> None:
        """Deliver the responses of a RESPONSES frame. Raises ProtocolError."""
        rows = self._connection.tensors(frame, 1 + WORDS * frame.words[0])
        extras = frame.extras if frame.has_extras else {}
        for given in read_responses(frame.words, extras, rows, self._in_flight.get):
            self._deliver(given)

    def _wake(self) -> None:
        self._woken = True
        if asyncio._get_running_loop() is self._loop:
            self._loop.call_soon(self._flush)
        else:
            self._loop.call_soon_threadsafe(self._flush)

    def _flush(self) -> None:
        self._woken = False
        waiting = self._waiting
        while waiting:
            batch: list[tuple[int, InferRequest]] = []
            nbytes = 0
            while waiting and nbytes < _MAX_BYTES:
                number, request = waiting.popleft()
                nbytes += sum(
                    [getattr(tensor.data, "nbytes", 0) for tensor in request.inputs.values()]
                )
                self._in_flight[number] = request
                batch.append((number, request))
            self._send(batch)
        numbers = [
            number
            for _ in range(len(self._cancelled))
            if (number := self._cancelled.popleft()) in self._in_flight
        ]
        if numbers:
            self._connection.send(kinds.CANCEL, numbers)

    def _send(self, batch: Sequence[tuple[int, InferRequest]]) -> None:
        try:
            words, rows, requested, extras = write_requests(
                batch, self._model_ids, self._tracer.trace_message
            )
            self._connection.send(kinds.INFER, words, rows, requested, extras)
            self._model_ids.announced()
        except Exception as error:
            if len(batch) > 1:  # a request that cannot be sent must not affect the others
                for one in batch:
                    self._send((one,))
                return
            number, request = batch[0]
            del self._in_flight[number]
            request.finished = True
            request.sink.put(request, InferResponse.failed(request, _failure(request, error)))

    def _deliver(self, given: NumberedResponse) -> None:
        number, request, response, traced = given
        final = response.final
        if final:
            request.finished = True
            del self._in_flight[number]
            if request.trace is not None:
                self._tracer.final_response(number, request.trace, traced)
        nbytes = (
            0 if final else sum([getattr(tensor.data, "nbytes", 0) for tensor in response.outputs])
        )
        try:
            request.sink.put(request, response)
        except Exception:
            log.exception("the sink of a request to model %s failed", request.model_name)
        if final:
            self._taken.pop(number, None)
        elif request.sink.ready(request):
            self._confirm(number, nbytes)
        else:
            request.sink.when_ready(request, lambda: self._confirm_soon(number, nbytes))

    def _confirm_soon(self, number: int, nbytes: int) -> None:
        if asyncio._get_running_loop() is self._loop:
            self._confirm(number, nbytes)
        else:
            self._loop.call_soon_threadsafe(self._confirm, number, nbytes)

    def _confirm(self, number: int, nbytes: int) -> None:
        if number not in self._in_flight:
            return
        count = self._taken.setdefault(number, CreditCounter()).add(nbytes)
        if count:
            self._connection.send(kinds.TAKEN, [number, count])


class _Owner:
    """The owner of a request in this process while the engine's process executes it."""

    __slots__ = ("_forwarded", "_number")

    def __init__(self, forwarded: ForwardedRequests, number: int) -> None:
        self._forwarded = forwarded
        self._number = number

    def respond(self, requests: Sequence[InferRequest], responses: Sequence[InferResponse]) -> None:
        raise AssertionError("only the engine's process responds: this is a bug")

    def reschedule(self, request: InferRequest) -> None:
        raise AssertionError("only the engine's process reschedules: this is a bug")

    def cancel(self, request: InferRequest) -> None:
        self._forwarded.cancel(self._number)


def _failure(request: InferRequest, error: Exception) -> TritonError:
    if isinstance(error, OSError):
        return Internal(f"no shared memory for the inputs of model '{request.model_name}': {error}")
    return internal_error(log, f"a request to model '{request.model_name}'", error)
