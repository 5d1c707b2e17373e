"""The open requests of one frontend process, in the engine's process."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Mapping, Sequence

import msgspec

from tritonpy.api.engine import Engine
from tritonpy.api.tracer import Tracer
from tritonpy.errors import Internal, TritonError
from tritonpy.frontend_processes import kinds
from tritonpy.frontend_processes.answers_frame import Given, write_answers
from tritonpy.frontend_processes.heads import KnownHeads
from tritonpy.frontend_processes.requests_frame import TraceSaid, read_requests
from tritonpy.incidents import incident
from tritonpy.ipc import Frame, ProtocolError
from tritonpy.ipc.blocks import PlacedInputs
from tritonpy.runners.call_streams import CallStream
from tritonpy.runners.workers.connection import Connection
from tritonpy.runners.workers.said import convert, first_words
from tritonpy.types import InferRequest, InferResponse, LoopSink, Trace

log = logging.getLogger("tritonpy.server")
Answer = tuple[InferRequest, InferResponse]


class _NotesSaid(msgspec.Struct):
    """What a frontend noted of a request after it was handed over."""

    stamps: list[tuple[str, int]]


class GuestSink(LoopSink):
    """Gives all answers that wait to `deliver_all` at once; producers of streams wait for the room that a request's `tag` has."""

    passes_on = True

    def __init__(self, loop: asyncio.AbstractEventLoop, deliver_all: Callable[[Sequence[Answer]], None]) -> None:
        super().__init__(loop, _never)
        self._deliver_all = deliver_all

    def put(self, request: InferRequest, response: InferResponse) -> None:
        if request.accepts_decoupled:
            request.tag.room.put(sum([tensor.nbytes for tensor in response.outputs]))
        self._waiting.append((request, response))
        if not self._woken:
            self._wake()

    def ready(self, request: InferRequest) -> bool:
        return not request.accepts_decoupled or request.tag.room.ready

    def when_ready(self, request: InferRequest, callback: Callable[[], None]) -> None:
        if request.accepts_decoupled:
            request.tag.room.when_ready(callback)
        else:
            callback()

    def cancelled(self, request: InferRequest) -> None:
        if request.accepts_decoupled:
            request.tag.room.release()

    def _drain(self) -> None:
        self._woken = False
        waiting = self._waiting
        self._deliver_all([waiting.popleft() for _ in range(len(waiting))])


def _never(_request: InferRequest, _response: InferResponse) -> None:
    raise AssertionError("answers are delivered all at once: this is a bug")


class Guests:
    """Hands the requests of INFER frames to the engine, and its answers back. Everything here runs on the loop's thread.

    A request's `tag` is its number, or, where its model may answer any number of times, a `CallStream`.
    """

    def __init__(self, engine: Engine, tracer: Tracer, loop: asyncio.AbstractEventLoop, connection: Connection) -> None:
        self._engine = engine
        self._tracer = tracer
        self._connection = connection
        self._heads = KnownHeads()
        self._sink = GuestSink(loop, self._answered)
        self._open: dict[int, InferRequest] = {}
        self._traces: dict[int, Trace] = {}  # until the frontend told the last of them
        self.hear: Mapping[int, Callable[[Frame], None]] = {
            kinds.INFER: self._infer,
            kinds.CANCEL: self._cancel,
            kinds.TAKEN: self._taken,
            kinds.NOTES: self._noted,
        }

    def close(self) -> None:
        """Cancel every request: nobody is left to be answered."""
        requests, self._open = list(self._open.values()), {}
        for request in requests:
            if request.accepts_decoupled:
                request.tag.leave()
            request.cancel()
        for trace in self._traces.values():
            trace.end()
        self._traces.clear()

    def _infer(self, frame: Frame) -> None:
        rows, wants = self._connection.tensors_and_wants(frame, first_words(frame, 2)[1], PlacedInputs)
        extras = frame.extras if frame.has_extras else {}
        opened = self._open
        for first, requests, trace in read_requests(frame.words, extras, rows, wants, self._heads, self._sink):
            for number, request in enumerate(requests, first):
                if number in opened:
                    raise ProtocolError(f"request {number} is open and came again")
                request.tag = CallStream(number) if request.accepts_decoupled else number
                opened[number] = request
            if trace is not None:
                self._trace(first, requests[0], trace)
            if len(requests) > 1:
                self._engine.infer_alike(requests, self._refused)
            else:
                self._hand_over(requests[0])

    def _hand_over(self, request: InferRequest) -> None:
        try:
            self._engine.infer(request)
        except Exception as error:
            self._refused(request, error)

    def _refused(self, request: InferRequest, error: Exception) -> None:
        failure = error if isinstance(error, TritonError) else incident(log, "an inference call", error)
        refusal = InferResponse.failed(request, failure)
        refusal.refused = True
        self._sink.put(request, refusal)

    def _trace(self, number: int, request: InferRequest, said: TraceSaid) -> None:
        request.trace = self._tracer.sample(request.model_name, said.headers)
        if request.trace is not None:
            self._traces[number] = request.trace
            for name, ns in said.stamps:
                request.trace.stamp(name, ns)

    def _cancel(self, frame: Frame) -> None:
        for number in frame.words:
            request = self._open.get(number)
            if request is not None:
                request.cancel()

    def _taken(self, frame: Frame) -> None:
        number, count = first_words(frame, 2)
        request = self._open.get(number)
        if request is None:
            return
        if not request.accepts_decoupled or not 0 < count <= request.tag.untaken:
            raise ProtocolError(f"{count} answers of request {number} were taken, so many there are not")
        request.tag.took(count)

    def _noted(self, frame: Frame) -> None:
        trace = self._traces.pop(first_words(frame, 1)[0], None)
        if trace is not None:
            for name, ns in convert(frame.extras, _NotesSaid).stamps:
                trace.stamp(name, ns)
            trace.end()

    def _answered(self, answers: Sequence[Answer]) -> None:
        given: list[Given] = []
        traces = self._traces
        for request, response in answers:
            number = request.tag.number if request.accepts_decoupled else request.tag
            if number not in self._open:  # the process has gone
                continue
            if response.final:
                del self._open[number]
            given.append((number, request, response, number in traces))
        if given:
            self._send(given)

    def _send(self, given: Sequence[Given]) -> None:
        try:
            self._write(given)
        except Exception as error:
            if len(given) > 1:  # one that cannot be sent must not take the others along
                for one in given:
                    self._send((one,))
                return
            self._fail(given[0], error)

    def _write(self, given: Sequence[Given]) -> None:
        words, rows, extras = write_answers(given)
        self._connection.send(kinds.ANSWER, words, rows, None, extras)

    def _fail(self, given: Given, error: Exception) -> None:
        number, request, _, traced = given
        if isinstance(error, OSError):
            failure: TritonError = Internal(
                f"no shared memory for the outputs of model '{request.model_name}': {error}"
            )
        else:
            failure = incident(log, f"an answer of model '{request.model_name}'", error)
        self._open.pop(number, None)
        request.cancel()
        # Not by `_send`, which would come back here: the error alone, in the words of nobody else, can be sent.
        refusal = InferResponse((), request.model_name, id=request.id, error=failure)
        self._write(((number, request, refusal, traced),))
