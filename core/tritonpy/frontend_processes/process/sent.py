"""The requests of this process that the engine owns."""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Sequence
from itertools import count

from tritonpy.errors import Internal, TritonError
from tritonpy.frontend_processes import kinds
from tritonpy.frontend_processes.answers_frame import WORDS, Given, read_answers
from tritonpy.frontend_processes.heads import WrittenHeads
from tritonpy.frontend_processes.process.tracer import FrontendTracer
from tritonpy.frontend_processes.requests_frame import write_requests
from tritonpy.incidents import incident
from tritonpy.ipc import Frame
from tritonpy.ipc.taken import Taken
from tritonpy.runners.workers.connection import Connection
from tritonpy.types import InferRequest, InferResponse

log = logging.getLogger("tritonpy.server")
_MOST_BYTES = (
    1 << 23
)  # of tensors in one frame, the last request of it not counted: they share one parcel until all of them are answered


class Sent:
    """Sends what was handed over in one turn of the loop in one frame. `send` may be called from any thread, the rest runs on the loop's."""

    def __init__(self, loop: asyncio.AbstractEventLoop, connection: Connection, tracer: FrontendTracer) -> None:
        self._loop = loop
        self._connection = connection
        self._tracer = tracer
        self._heads = WrittenHeads()
        self._numbers = count(1)
        self._waiting: deque[tuple[int, InferRequest]] = deque()
        self._cancelled: deque[int] = deque()
        self._woken = False
        self._open: dict[int, InferRequest] = {}
        self._taken: dict[int, Taken] = {}  # of those that were answered and not for good

    def send(self, request: InferRequest) -> None:
        """Take a request over; its answers go to its sink."""
        number = next(self._numbers)
        request.owner = _Owner(self, number)
        self._waiting.append((number, request))
        if not self._woken:
            self._wake()

    def cancel(self, number: int) -> None:
        """Pass a cancellation on, from any thread."""
        self._cancelled.append(number)
        if not self._woken:
            self._wake()

    def answered(self, frame: Frame) -> None:
        """Take an ANSWER frame. Raises ProtocolError."""
        rows = self._connection.tensors(frame, 1 + WORDS * frame.words[0])
        extras = frame.extras if frame.has_extras else {}
        for given in read_answers(frame.words, extras, rows, self._open.get):
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
            while waiting and nbytes < _MOST_BYTES:
                number, request = waiting.popleft()
                nbytes += sum([getattr(tensor.data, "nbytes", 0) for tensor in request.inputs.values()])
                self._open[number] = request
                batch.append((number, request))
            self._send(batch)
        numbers = [number for _ in range(len(self._cancelled)) if (number := self._cancelled.popleft()) in self._open]
        if numbers:
            self._connection.send(kinds.CANCEL, numbers)

    def _send(self, batch: Sequence[tuple[int, InferRequest]]) -> None:
        try:
            words, rows, wants, extras = write_requests(batch, self._heads, self._tracer.begun)
            self._connection.send(kinds.INFER, words, rows, wants, extras)
            self._heads.announced()
        except Exception as error:
            if len(batch) > 1:  # one that cannot be sent must not take the others along
                for one in batch:
                    self._send((one,))
                return
            number, request = batch[0]
            del self._open[number]
            request.answered = True
            request.sink.put(request, InferResponse.failed(request, _failure(request, error)))

    def _deliver(self, given: Given) -> None:
        number, request, response, traced = given
        final = response.final
        if final:
            request.answered = True
            del self._open[number]
            if request.trace is not None:
                self._tracer.answered(number, request.trace, traced)
        nbytes = 0 if final else sum([getattr(tensor.data, "nbytes", 0) for tensor in response.outputs])
        try:
            request.sink.put(request, response)
        except Exception:
            log.exception("the sink of a request to model %s failed", request.model_name)
        if final:
            self._taken.pop(number, None)
        elif request.sink.ready(request):
            self._took(number, nbytes)
        else:
            request.sink.when_ready(request, lambda: self._took_soon(number, nbytes))

    def _took_soon(self, number: int, nbytes: int) -> None:
        if asyncio._get_running_loop() is self._loop:
            self._took(number, nbytes)
        else:
            self._loop.call_soon_threadsafe(self._took, number, nbytes)

    def _took(self, number: int, nbytes: int) -> None:
        if number not in self._open:
            return
        told = self._taken.setdefault(number, Taken()).add(nbytes)
        if told:
            self._connection.send(kinds.TAKEN, [number, told])


class _Owner:
    """Owns a request here while the model that runs it is elsewhere."""

    __slots__ = ("_number", "_sent")

    def __init__(self, sent: Sent, number: int) -> None:
        self._sent = sent
        self._number = number

    def answer(self, requests: Sequence[InferRequest], responses: Sequence[InferResponse]) -> None:
        raise AssertionError("only the engine's process answers: this is a bug")

    def reschedule(self, request: InferRequest) -> None:
        raise AssertionError("only the engine's process reschedules: this is a bug")

    def cancel(self, request: InferRequest) -> None:
        self._sent.cancel(self._number)


def _failure(request: InferRequest, error: Exception) -> TritonError:
    if isinstance(error, OSError):
        return Internal(f"no shared memory for the inputs of model '{request.model_name}': {error}")
    return incident(log, f"a request to model '{request.model_name}'", error)
