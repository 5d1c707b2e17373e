"""Who owns a request while it is in this process: takes the backend's answers and sends them."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from threading import Lock, get_ident

from tritonpy.clock import now_ns
from tritonpy.errors import Internal, TritonError, exception_text
from tritonpy.ipc.channel import Channel
from tritonpy.ipc.windows import Windows
from tritonpy.runners.workers.backend_process.answer_frame import AnswerFrame, Row
from tritonpy.runners.workers.backend_process.execution import Execution
from tritonpy.runners.workers.on_host import on_host
from tritonpy.types import Batch, InferRequest, InferResponse

log = logging.getLogger("tritonpy.model")

_PATIENCE_NS = 200_000  # how long the answers of one execution may wait for those of the next


class Answers:
    """One per worker (`types.Owner`); answers may come from any thread.

    An answer leaves at once, but for those that complete the batch that is being executed: `execute` is about to return then, and what it
    says by that goes in the same frame. Where it does not return soon, `hurry` is called.
    """

    def __init__(self, channel: Channel, opened: dict[int, Execution], windows: Windows) -> None:
        self._channel = channel
        self._windows = windows
        self._open = opened  # executions by the numbers of their unanswered requests
        self._lock = Lock()
        self._executor = get_ident()
        self._running: list[Execution] = []
        self._held = AnswerFrame()
        self._held_ns = 0  # when the first execution of what is held was over
        self._hurried = False

    def begin(self, execution: Execution) -> Batch:
        """Take note that the calling thread executes; return the batch."""
        with self._lock:
            self._executor = get_ident()
            self._running.append(execution)
            self._hurried = False
        return execution.batch

    def join(self, execution: Execution) -> Batch:
        """Take an execution in that the backend asked for; it is over when the one that runs is, or at once where none runs."""
        frame = AnswerFrame()
        with self._lock:
            if self._running:
                self._running.append(execution)
            else:
                now = now_ns()
                frame.over(execution, now, now)
        if frame:
            frame.send(self._channel)
        return execution.batch

    def fail(self, error: BaseException) -> None:
        """Answer what is left of the running batches with `error`."""
        failure = error if isinstance(error, TritonError) else Internal(exception_text(error))
        left = [request for execution in self._running for request in list(execution.open.values())]
        self.answer(left, [InferResponse.failed(request, failure) for request in left])

    def over(self, begin_ns: int, end_ns: int, more: bool) -> None:
        """Take note that `execute` returned; `more` says that another execution follows at once."""
        with self._lock:
            while self._running:  # nothing here may hold a batch any more: its shared memory goes back with this frame
                self._held.over(self._running.pop(0), begin_ns, end_ns)
            self._held_ns = self._held_ns or end_ns
            wait = more and end_ns - self._held_ns < _PATIENCE_NS
        if not wait:
            self.flush()

    def flush(self) -> None:
        """Send what is held."""
        with self._lock:
            frame = self._release()
        if frame:
            frame.send(self._channel)

    def hurry(self) -> None:
        """Hold nothing until the next execution begins: this one takes its time."""
        self._hurried = True
        self.flush()

    def answer(self, requests: Sequence[InferRequest], responses: Sequence[InferResponse]) -> None:
        responses, rows, states = _prepared(requests, responses)
        with self._lock:
            frame = self._held if self._is_executor() else AnswerFrame()
            for request, response, row in zip(requests, responses, rows, strict=True):
                self._add(frame, request, response, row, states)
            if frame is self._held:
                frame = self._unless_complete()
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
            frame = self._held if self._is_executor() else AnswerFrame()
            _add_states(frame, execution, request, states)
            frame.reschedule(request.tag)
            execution.leave(request)
            if frame is self._held:
                frame = self._unless_complete()
        if frame:
            frame.send(self._channel)
        self._windows.end(request.tag)

    def cancel(self, request: InferRequest) -> None:
        """Nothing waits here: a backend that cancels by itself has set the flag that it sees."""

    def _count(self, requests: Sequence[InferRequest], responses: Sequence[InferResponse], rows: Sequence[Row]) -> None:
        """Take note of what went into streams, and of streams that ended."""
        for request, response, row in zip(requests, responses, rows, strict=True):
            if request.answered:
                self._windows.end(request.tag)
            elif not response.final:
                self._windows.begin(request.tag)
                self._windows.sent(request.tag, sum([tensor.nbytes for tensor in row]))

    def _is_executor(self) -> bool:
        return bool(self._running) and get_ident() == self._executor

    def _unless_complete(self) -> AnswerFrame:
        """Return what is to be sent now."""
        hold = not self._hurried and not any([execution.open for execution in self._running])
        return AnswerFrame() if hold else self._release()

    def _release(self) -> AnswerFrame:
        frame, self._held, self._held_ns = self._held, AnswerFrame(), 0
        return frame

    def _add(
        self, frame: AnswerFrame, request: InferRequest, response: InferResponse, row: Row, states: Mapping[int, Row]
    ) -> None:
        execution = self._open.get(request.tag)
        if execution is None:  # it had its final answer
            return
        frame.add(request.tag, execution, response, row)
        if response.final:
            _add_states(frame, execution, request, states)
            request.answered = True
            del self._open[request.tag]
            execution.leave(request)


def _prepared(
    requests: Sequence[InferRequest], responses: Sequence[InferResponse]
) -> tuple[Sequence[InferResponse], Sequence[Row], Mapping[int, Row]]:
    """Return the responses, their outputs and the new states as they can travel; errors where something cannot."""
    try:
        final = [request for request, response in zip(requests, responses, strict=True) if response.final]
        return responses, [on_host(response.outputs) for response in responses], _new_states(final)
    except Exception as error:
        log.exception("the outputs of a batch cannot be sent")
        failure = Internal(exception_text(error))
        return [InferResponse.failed(request, failure) for request in requests], [()] * len(requests), {}


def _new_states(requests: Sequence[InferRequest]) -> Mapping[int, Row]:
    """Return the new states of the batches that the requests are of, once each, by the number of a request."""
    found: dict[int, Row] = {}
    last = None
    for request in requests:
        batch = request.batch
        if batch is not None and batch.new_states and batch is not last:
            found[request.tag] = on_host(batch.new_states.values())
        last = batch
    return found


def _add_states(frame: AnswerFrame, execution: Execution, request: InferRequest, states: Mapping[int, Row]) -> None:
    row = states.get(request.tag)
    if row and not execution.states_sent:
        execution.states_sent = True
        frame.add_states(request.tag, row)
