"""Requests in flight of one frontend process, in the engine's process."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Mapping, Sequence

import msgspec

from tritonpy import Engine, InferRequest, InferResponse, Internal, TritonError
from tritonpy.execution import CallStream
from tritonpy.frontend import LoopSink, internal_error
from tritonpy.tracing import Trace, Tracer
from tritonpy_engine_rpc.connection import Connection
from tritonpy_engine_rpc.messages import convert, first_words
from tritonpy_frontend_processes import kinds
from tritonpy_frontend_processes.model_ids import ModelIdDecoder
from tritonpy_frontend_processes.requests_frame import TraceMessage, read_requests
from tritonpy_frontend_processes.responses_frame import NumberedResponse, write_responses
from tritonpy_ipc import Frame, ProtocolError
from tritonpy_ipc.blocks import BlockInputs

log = logging.getLogger("tritonpy.server")
Delivery = tuple[InferRequest, InferResponse]


class _NotesMessage(msgspec.Struct):
    """Time stamps that a frontend noted after it sent the request."""

    stamps: list[tuple[str, int]]


class SessionSink(LoopSink):
    """A sink that delivers all waiting responses in one call of `deliver_all`.

    Producers of streams wait for the flow control of the request's `tag`.
    """

    passes_on = True

    def __init__(
        self, loop: asyncio.AbstractEventLoop, deliver_all: Callable[[Sequence[Delivery]], None]
    ) -> None:
        super().__init__(loop, _never)
        self._deliver_all = deliver_all

    def put(self, request: InferRequest, response: InferResponse) -> None:
        if request.accepts_decoupled:
            request.tag.flow_control.put(sum([tensor.nbytes for tensor in response.outputs]))
        self._waiting.append((request, response))
        if not self._woken:
            self._wake()

    def ready(self, request: InferRequest) -> bool:
        return not request.accepts_decoupled or request.tag.flow_control.ready

    def when_ready(self, request: InferRequest, callback: Callable[[], None]) -> None:
        if request.accepts_decoupled:
            request.tag.flow_control.when_ready(callback)
        else:
            callback()

    def cancelled(self, request: InferRequest) -> None:
        if request.accepts_decoupled:
            request.tag.flow_control.release()

    def _drain(self) -> None:
        self._woken = False
        waiting = self._waiting
        self._deliver_all([waiting.popleft() for _ in range(len(waiting))])


def _never(_request: InferRequest, _response: InferResponse) -> None:
    raise AssertionError("responses are delivered in one call: this is a bug")


class FrontendSession:
    """Sends the requests of INFER frames to the engine and its responses to the frontend process.

    A request's `tag` is its number, or a `CallStream` if it accepts a decoupled model. All methods
    run on the event loop's thread.
    """

    def __init__(
        self,
        engine: Engine,
        tracer: Tracer,
        loop: asyncio.AbstractEventLoop,
        connection: Connection,
    ) -> None:
        self._engine = engine
        self._tracer = tracer
        self._connection = connection
        self._model_ids = ModelIdDecoder()
        self._sink = SessionSink(loop, self._send_responses)
        self._in_flight: dict[int, InferRequest] = {}
        self._traces: dict[int, Trace] = {}  # until the frontend has sent the last time stamps
        self.handlers: Mapping[int, Callable[[Frame], None]] = {
            kinds.INFER: self._infer,
            kinds.CANCEL: self._cancel,
            kinds.TAKEN: self._confirmed,
            kinds.NOTES: self._add_time_stamps,
        }

    def close(self) -> None:
        """Cancel every request, because the process is gone."""
        requests, self._in_flight = list(self._in_flight.values()), {}
        for request in requests:
            if request.accepts_decoupled:
                request.tag.abandon()
            request.cancel()
        for trace in self._traces.values():
            trace.end()
        self._traces.clear()

    def _infer(self, frame: Frame) -> None:
        rows, requested = self._connection.tensors_and_outputs(
            frame, first_words(frame, 2)[1], BlockInputs
        )
        extras = frame.extras if frame.has_extras else {}
        in_flight = self._in_flight
        for first, requests, trace in read_requests(
            frame.words, extras, rows, requested, self._model_ids, self._sink
        ):
            for number, request in enumerate(requests, first):
                if number in in_flight:
                    raise ProtocolError(f"request {number} is in flight and arrived again")
                request.tag = CallStream(number) if request.accepts_decoupled else number
                in_flight[number] = request
            if trace is not None:
                self._start_trace(first, requests[0], trace)
            if len(requests) > 1:
                self._engine.infer_many(requests, self._refuse)
            else:
                self._infer_one(requests[0])

    def _infer_one(self, request: InferRequest) -> None:
        try:
            self._engine.infer(request)
        except Exception as error:
            self._refuse(request, error)

    def _refuse(self, request: InferRequest, error: Exception) -> None:
        failure = (
            error
            if isinstance(error, TritonError)
            else internal_error(log, "an inference call", error)
        )
        refusal = InferResponse.failed(request, failure)
        refusal.refused = True
        self._sink.put(request, refusal)

    def _start_trace(self, number: int, request: InferRequest, message: TraceMessage) -> None:
        request.trace = self._tracer.sample(request.model_name, message.headers)
        if request.trace is not None:
            self._traces[number] = request.trace
            for name, ns in message.stamps:
                request.trace.stamp(name, ns)

    def _cancel(self, frame: Frame) -> None:
        for number in frame.words:
            request = self._in_flight.get(number)
            if request is not None:
                request.cancel()

    def _confirmed(self, frame: Frame) -> None:
        number, count = first_words(frame, 2)
        request = self._in_flight.get(number)
        if request is None:
            return
        if not request.accepts_decoupled or not 0 < count <= request.tag.unconsumed:
            raise ProtocolError(
                f"{count} responses of request {number} were confirmed, more than were sent"
            )
        request.tag.consume(count)

    def _add_time_stamps(self, frame: Frame) -> None:
        trace = self._traces.pop(first_words(frame, 1)[0], None)
        if trace is not None:
            for name, ns in convert(frame.extras, _NotesMessage).stamps:
                trace.stamp(name, ns)
            trace.end()

    def _send_responses(self, deliveries: Sequence[Delivery]) -> None:
        given: list[NumberedResponse] = []
        traces = self._traces
        for request, response in deliveries:
            number = request.tag.number if request.accepts_decoupled else request.tag
            if number not in self._in_flight:  # the process is gone
                continue
            if response.final:
                del self._in_flight[number]
            given.append((number, request, response, number in traces))
        if given:
            self._send(given)

    def _send(self, given: Sequence[NumberedResponse]) -> None:
        try:
            self._write(given)
        except Exception as error:
            if len(given) > 1:  # a response that cannot be sent must not affect the others
                for one in given:
                    self._send((one,))
                return
            self._fail(given[0], error)

    def _write(self, given: Sequence[NumberedResponse]) -> None:
        words, rows, extras = write_responses(given)
        self._connection.send(kinds.RESPONSES, words, rows, None, extras)

    def _fail(self, given: NumberedResponse, error: Exception) -> None:
        number, request, _, traced = given
        if isinstance(error, OSError):
            failure: TritonError = Internal(
                f"no shared memory for the outputs of model '{request.model_name}': {error}"
            )
        else:
            failure = internal_error(log, f"a response of model '{request.model_name}'", error)
        self._in_flight.pop(number, None)
        request.cancel()
        # Not `_send`, which would call this method again. An error without outputs can always be
        # sent.
        refusal = InferResponse((), request.model_name, id=request.id, error=failure)
        self._write(((number, request, refusal, traced),))
