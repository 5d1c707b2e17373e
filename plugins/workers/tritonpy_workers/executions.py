"""Encoding of batches as frames, and decoding of their responses."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from tritonpy import Batch, Cancelled, Code, InferRequest, InferResponse, Tensor, now_ns
from tritonpy.frontend import NO_PARAMETERS
from tritonpy.metrics import FailureReason
from tritonpy_engine_rpc.connection import Connection
from tritonpy_engine_rpc.host_tensors import input_rows
from tritonpy_engine_rpc.messages import decode_error
from tritonpy_ipc import Frame, Kind, ProtocolError
from tritonpy_ipc.blocks import BlockRow
from tritonpy_workers.request_extras import is_plain, request_extras
from tritonpy_workers.sequence_frame import needs_sequence_frame, sequence_frame_parts

if TYPE_CHECKING:
    from tritonpy import ModelContext

_NOTHING: Mapping[str, Any] = {}
FINAL, EMPTY = 1, 2  # flags of a response


class WorkerExecution:
    """A batch at the worker; it ends when `execute` returns, even if responses are outstanding."""

    __slots__ = ("batch", "id", "joined", "sent_ns")

    def __init__(self, number: int, batch: Batch, sent_ns: int, joined: bool) -> None:
        self.id = number
        self.joined = joined  # joined a running execution
        self.batch = batch
        self.sent_ns = sent_ns


class Executions:
    """The running executions of a worker in order, and its requests in flight by number."""

    def __init__(self, model: ModelContext, connection: Connection) -> None:
        self._model = model
        self._connection = connection
        self._last = 0  # number of the last execution
        self._requests = 0
        self._instance: Any = None  # the slot of the instance
        self.running: dict[int, WorkerExecution] = {}
        self.open: dict[int, InferRequest] = {}
        self.calls = False  # whether an execution has waited for a call to another model

    def send(self, batches: Sequence[Batch], joins: bool = False) -> list[int]:
        """Send `batches` in one frame and return the numbers of their executions.

        The worker executes them in order. With `joins`, they join the running execution, which
        asked for more requests. Raises `OSError` if shared memory cannot be allocated.
        """
        first, now = self._requests, now_ns()
        executions = [
            WorkerExecution(number, batch, now, joins)
            for number, batch in enumerate(batches, self._last + 1)
        ]
        requests = [request for batch in batches for request in batch.requests]
        words = [len(executions)]
        for execution in executions:
            words += (execution.id, len(execution.batch.requests))
        words.append(first)
        rows = input_rows(requests)
        requested = [
            None if request.outputs is None else tuple(request.outputs) for request in requests
        ]
        kind = Kind.EXECUTE
        extras = (
            {} if all([is_plain(request) for request in requests]) else request_extras(requests)
        )
        ids = [request.id for request in requests]
        if any(ids):
            extras["ids"] = ids
        if any([needs_sequence_frame(batch) for batch in batches]):
            kind = Kind.EXECUTE_SEQUENCE
            more_words, more_extras, more_rows = sequence_frame_parts(batches)
            words += more_words
            extras.update(more_extras)
            rows += more_rows
            requested += [None] * len(more_rows)
        if joins:
            extras["joins"] = True
        self._connection.send(kind, words, rows, requested, extras)
        # Recorded only after sending, which may raise.
        self._last += len(executions)
        self._requests += len(requests)
        self._instance = batches[0].instance
        self.open.update(enumerate(requests, first))
        for execution in executions:
            self.running[execution.id] = execution
            execution.batch.executing = True
        return [execution.id for execution in executions]

    def take(self, frame: Frame, on_end: Callable[[Sequence[WorkerExecution]], None]) -> None:
        """Call `on_end` with the executions that have ended, then send the responses of the worker.

        The order lets the worker get its next batch before the responses are sent. Raises
        `ProtocolError`.
        """
        words = frame.words
        try:
            done = self._decode_ended(words)
            at = 1 + 3 * len(done)
            runs = words[at]
            first = self.open.get(words[at + 1]) if runs else None
            make_row = BlockRow if first is not None and first.sink.passes_on else None
            rows = self._connection.tensors(frame, at + 1 + 3 * runs, make_row)
            answered = self._decode_responses(words, at, runs, len(rows))
        except IndexError as error:
            raise ProtocolError("a response is truncated") from error
        extras = frame.extras if frame.has_extras else _NOTHING
        if extras:
            self._take_times(extras.get("times", {}))
            self._take_states(extras.get("states", {}), rows, len(answered))
        for execution in done:
            del self.running[execution.id]
            execution.batch.executing = False
        if done:
            on_end(done)
        self._send_responses(answered, rows, extras)
        if extras:
            for number in extras.get("reschedule", ()):
                request = self.open.pop(number, None)
                if request is not None:
                    request.reschedule()

    def caller(self, execution: int, request: int) -> tuple[Batch | None, InferRequest | None]:
        """Return the batch of `execution` (0: none) and the request with number `request` - 1.

        If `request` is 0, returns the only request of the batch, or None if it has several. Each
        is None if it has ended. Raises `ProtocolError` for a number that was never used.
        """
        if execution > self._last or request > self._requests:
            raise ProtocolError(f"there is no execution {execution} or no request {request - 1}")
        running = self.running.get(execution)
        batch = None if running is None else running.batch
        if request:
            return batch, self.open.get(request - 1)
        if batch is not None and len(batch.requests) == 1:
            return batch, batch.requests[0]
        return batch, None

    def background_batch(self) -> Batch | None:
        """Return an empty batch for code that outlives its execution; None before any batch."""
        return (
            None
            if self._instance is None
            else Batch([], model=self._model, instance=self._instance)
        )

    def cancel(self, request: InferRequest) -> None:
        """Notify the worker that `request` is cancelled; fail it now if it has not begun."""
        numbers = [number for number, each in self.open.items() if each is request]
        if numbers:
            self._connection.send(Kind.CANCEL, numbers)
            if self._is_queued(request):
                del self.open[numbers[0]]
                request.respond(InferResponse.failed(request, Cancelled("Request cancelled")))

    def unfinished(self, begun: int) -> list[Batch]:
        """Remove and return, oldest first, the batches that another worker may execute.

        `begun` is the last execution that began. It is not returned, because it may have ended the
        worker. Later executions did not begin. Earlier ones have ended, but their responses are
        lost with the worker. They are returned unless the model is decoupled, as it may have sent
        some responses. Batches that joined an execution are never returned.
        """
        decoupled = self._model.config.model_transaction_policy.decoupled
        found = [
            execution
            for execution in self.running.values()
            if execution.id != begun
            and not execution.joined
            and (execution.id > begun or not decoupled)
        ]
        batches = [execution.batch for execution in found]
        for execution in found:
            execution.batch.executing = False
            del self.running[execution.id]
        again = {id(request) for batch in batches for request in batch.requests}
        self.open = {
            number: request for number, request in self.open.items() if id(request) not in again
        }
        return batches

    def abandon(self) -> list[InferRequest]:
        """Remove everything and return the requests without a final response."""
        left = [request for request in self.open.values() if not request.finished]
        for execution in self.running.values():
            execution.batch.executing = False
        self.open.clear()
        self.running.clear()
        return left

    def _is_queued(self, request: InferRequest) -> bool:
        """Return whether `request` waits in the queue of the worker, behind a running execution."""
        behind = list(self.running.values())[1:]
        return any(
            execution.batch is request.batch and not execution.joined for execution in behind
        )

    def _decode_ended(self, words: Sequence[int]) -> list[WorkerExecution]:
        done = []
        for index in range(1, 1 + 3 * words[0], 3):
            execution = self.running.get(words[index])
            if execution is None:
                raise ProtocolError(f"execution {words[index]} ended but was not running")
            execution.batch.input_end_ns, execution.batch.infer_end_ns = (
                words[index + 1],
                words[index + 2],
            )
            done.append(execution)
        return done

    @staticmethod
    def _decode_responses(
        words: Sequence[int], at: int, runs: int, rows: int
    ) -> list[tuple[int, int]]:
        """Return number and flags of each response.

        In `words`, consecutive requests with the same flags are one entry.
        """
        count = sum(words[at + 2 : at + 1 + 3 * runs : 3])
        if count > rows:
            raise ProtocolError(f"{count} responses came with {rows} rows")
        return [
            (number, words[index + 2])
            for index in range(at + 1, at + 1 + 3 * runs, 3)
            for number in range(words[index], words[index] + words[index + 1])
        ]

    def _send_responses(
        self,
        answered: Sequence[tuple[int, int]],
        rows: Sequence[Sequence[Tensor]],
        extras: Mapping[str, Any],
    ) -> None:
        errors, parameters = extras.get("errors", {}), extras.get("parameters", {})
        name, version = self._model.name, self._model.version
        requests: list[InferRequest] = []
        responses: list[InferResponse] = []
        for index, (number, flags) in enumerate(answered):
            request = self.open.get(number)
            if request is None:  # abandoned in the meantime
                continue
            if flags & FINAL:
                del self.open[number]
            response = InferResponse(rows[index], name, version, request.id)
            if errors or parameters or flags != FINAL:
                _set_details(response, flags, errors.get(str(index)), parameters.get(str(index)))
            requests.append(request)
            responses.append(response)
        if requests:
            requests[0].owner.respond(requests, responses)

    def _take_times(self, times: Mapping[str, Sequence[int]]) -> None:
        """Set the times of batches whose responses precede the end of their execution.

        The statistics are updated when a response is sent.
        """
        for number, (input_end_ns, infer_end_ns) in times.items():
            batch = self._batch_of(number)
            if batch is not None:
                batch.input_end_ns, batch.infer_end_ns = input_end_ns, infer_end_ns

    def _take_states(
        self, states: Mapping[str, int], rows: list[Sequence[Tensor]], at: int
    ) -> None:
        for number, count in states.items():
            batch = self._batch_of(number)
            if batch is not None:
                batch.new_states.update(
                    {tensor.name: tensor for row in rows[at : at + count] for tensor in row}
                )
            at += count

    def _batch_of(self, number: str) -> Batch | None:
        request = self.open.get(int(number))
        return None if request is None else request.batch


def _set_details(response: InferResponse, flags: int, error: Any, parameters: Any) -> None:
    response.final, response.empty = bool(flags & FINAL), bool(flags & EMPTY)
    if error is not None:
        response.error = decode_error(
            error, None if error[0] == Code.CANCELLED else FailureReason.BACKEND
        )
        response.outputs = ()
    response.parameters = parameters or NO_PARAMETERS
