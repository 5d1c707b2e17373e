"""Sending of responses; the owner of all requests in this process."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from threading import Lock, get_ident

from tritonpy import Batch, InferRequest, InferResponse, Internal, TritonError, now_ns
from tritonpy.execution import exception_text
from tritonpy_engine_rpc.host_tensors import to_host
from tritonpy_ipc.channel import Channel
from tritonpy_ipc.windows import Windows
from tritonpy_workers.backend_process.execution import ReceivedExecution
from tritonpy_workers.backend_process.response_frame import ResponseFrame, Row

log = logging.getLogger("tritonpy.model")

_MAX_WAIT_NS = 200_000  # how long responses of one execution may wait for those of the next


class ResponseSender:
    """Sends the backend's responses to the server (`types.Owner`); one per worker.

    Responses may come from any thread. They are sent immediately, except those that complete the
    running batch. `execute` is about to return then, and its end goes in the same frame. If it does
    not return soon, `stop_holding` is called.
    """

    def __init__(
        self, channel: Channel, opened: dict[int, ReceivedExecution], windows: Windows
    ) -> None:
        self._channel = channel
        self._windows = windows
        self._open = opened  # executions by the numbers of their unfinished requests
        self._lock = Lock()
        self._executor = get_ident()
        self._running: list[ReceivedExecution] = []
        self._held = ResponseFrame()
        self._held_ns = 0  # when the first of the held executions ended
        self._holding_stopped = False

    def begin(self, execution: ReceivedExecution) -> Batch:
        """Record that the calling thread executes; return the batch."""
        with self._lock:
            self._executor = get_ident()
            self._running.append(execution)
            self._holding_stopped = False
        return execution.batch

    def join(self, execution: ReceivedExecution) -> Batch:
        """Add an execution that the backend requested; return its batch.

        It ends with the running execution, or immediately if none is running.
        """
        frame = ResponseFrame()
        with self._lock:
            if self._running:
                self._running.append(execution)
            else:
                now = now_ns()
                frame.finish(execution, now, now)
        if frame:
            frame.send(self._channel)
        return execution.batch

    def fail(self, error: BaseException) -> None:
        """Fail the unfinished requests of the running batches with `error`."""
        failure = error if isinstance(error, TritonError) else Internal(exception_text(error))
        left = [request for execution in self._running for request in list(execution.open.values())]
        self.respond(left, [InferResponse.failed(request, failure) for request in left])

    def finish(self, begin_ns: int, end_ns: int, more: bool) -> None:
        """Record that `execute` returned; `more` if another execution follows immediately."""
        with self._lock:
            while self._running:  # keep no batch: its shared memory returns with this frame
                self._held.finish(self._running.pop(0), begin_ns, end_ns)
            self._held_ns = self._held_ns or end_ns
            wait = more and end_ns - self._held_ns < _MAX_WAIT_NS
        if not wait:
            self.flush()

    def flush(self) -> None:
        """Send held responses."""
        with self._lock:
            frame = self._release()
        if frame:
            frame.send(self._channel)

    def stop_holding(self) -> None:
        """Hold no responses until the next execution begins, because this one is slow."""
        self._holding_stopped = True
        self.flush()

    def respond(self, requests: Sequence[InferRequest], responses: Sequence[InferResponse]) -> None:
        responses, rows, states = _prepare(requests, responses)
        with self._lock:
            frame = self._held if self._is_executor() else ResponseFrame()
            for request, response, row in zip(requests, responses, rows, strict=True):
                self._add(frame, request, response, row, states)
            if frame is self._held:
                frame = self._frame_to_send()
        if frame:
            frame.send(self._channel)
        if self._windows or not all([response.final for response in responses]):
            self._count(requests, responses, rows)

    def reschedule(self, request: InferRequest) -> None:
        states = _new_states([request])
        with self._lock:
            execution = self._open.pop(request.tag, None)
            if execution is None:
                return
            frame = self._held if self._is_executor() else ResponseFrame()
            _add_states(frame, execution, request, states)
            frame.reschedule(request.tag)
            execution.remove(request)
            if frame is self._held:
                frame = self._frame_to_send()
        if frame:
            frame.send(self._channel)
        self._windows.end(request.tag)

    def cancel(self, request: InferRequest) -> None:
        """Do nothing: no request waits in a queue here."""

    def _count(
        self,
        requests: Sequence[InferRequest],
        responses: Sequence[InferResponse],
        rows: Sequence[Row],
    ) -> None:
        """Update flow control for streaming responses and finished streams."""
        for request, response, row in zip(requests, responses, rows, strict=True):
            if request.finished:
                self._windows.end(request.tag)
            elif not response.final:
                self._windows.begin(request.tag)
                self._windows.sent(request.tag, sum([tensor.nbytes for tensor in row]))

    def _is_executor(self) -> bool:
        return bool(self._running) and get_ident() == self._executor

    def _frame_to_send(self) -> ResponseFrame:
        """Return the frame to send now."""
        hold = not self._holding_stopped and not any(
            [execution.open for execution in self._running]
        )
        return ResponseFrame() if hold else self._release()

    def _release(self) -> ResponseFrame:
        frame, self._held, self._held_ns = self._held, ResponseFrame(), 0
        return frame

    def _add(
        self,
        frame: ResponseFrame,
        request: InferRequest,
        response: InferResponse,
        row: Row,
        states: Mapping[int, Row],
    ) -> None:
        execution = self._open.get(request.tag)
        if execution is None:  # it has its final response
            return
        frame.add(request.tag, execution, response, row)
        if response.final:
            _add_states(frame, execution, request, states)
            request.finished = True
            del self._open[request.tag]
            execution.remove(request)


def _prepare(
    requests: Sequence[InferRequest], responses: Sequence[InferResponse]
) -> tuple[Sequence[InferResponse], Sequence[Row], Mapping[int, Row]]:
    """Return the responses, outputs and new states to send, or errors if one cannot be sent."""
    try:
        final = [
            request for request, response in zip(requests, responses, strict=True) if response.final
        ]
        return responses, [to_host(response.outputs) for response in responses], _new_states(final)
    except Exception as error:
        log.exception("the outputs of a batch could not be sent")
        failure = Internal(exception_text(error))
        return (
            [InferResponse.failed(request, failure) for request in requests],
            [()] * len(requests),
            {},
        )


def _new_states(requests: Sequence[InferRequest]) -> Mapping[int, Row]:
    """Return the new states of each batch once, by the number of one of its requests."""
    found: dict[int, Row] = {}
    last = None
    for request in requests:
        batch = request.batch
        if batch is not None and batch.new_states and batch is not last:
            found[request.tag] = to_host(batch.new_states.values())
        last = batch
    return found


def _add_states(
    frame: ResponseFrame,
    execution: ReceivedExecution,
    request: InferRequest,
    states: Mapping[int, Row],
) -> None:
    row = states.get(request.tag)
    if row and not execution.states_sent:
        execution.states_sent = True
        frame.add_states(request.tag, row)
