"""Batches as frames, and the answers that come back."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from tritonpy.clock import now_ns
from tritonpy.errors import Cancelled, Code, FailureReason
from tritonpy.ipc import Frame, Kind, ProtocolError
from tritonpy.ipc.blocks import PlacedRow
from tritonpy.runners.workers.connection import Connection
from tritonpy.runners.workers.laden import is_laden, laden_words
from tritonpy.runners.workers.on_host import input_rows
from tritonpy.runners.workers.rare import is_plain, request_extras
from tritonpy.runners.workers.told_error import told_error
from tritonpy.types import NO_PARAMETERS, Batch, InferRequest, InferResponse, Tensor

if TYPE_CHECKING:
    from tritonpy.api.backend import ModelContext

_NOTHING: Mapping[str, Any] = {}
FINAL, EMPTY = 1, 2  # flags of an answer


class Execution:
    """One batch at the worker. It is over when `execute` returned, whatever is still unanswered."""

    __slots__ = ("batch", "id", "joined", "sent_ns")

    def __init__(self, number: int, batch: Batch, sent_ns: int, joined: bool) -> None:
        self.id = number
        self.joined = joined  # to one that ran already
        self.batch = batch
        self.sent_ns = sent_ns


class Executions:
    """What one worker has been given: its running executions in order, and its open requests by number."""

    def __init__(self, model: ModelContext, connection: Connection) -> None:
        self._model = model
        self._connection = connection
        self._last = 0  # execution
        self._requests = 0
        self._instance: Any = None  # whose executions these are
        self.running: dict[int, Execution] = {}
        self.open: dict[int, InferRequest] = {}
        self.calls = False  # some execution called another model, and waited for it

    def send(self, batches: Sequence[Batch], joins: bool = False) -> list[int]:
        """Send `batches` in one frame and return their numbers.

        The worker executes them one after the other, or with `joins` hands them to the execution that runs and asked for more.
        Raises OSError where shared memory cannot be had.
        """
        first, now = self._requests, now_ns()
        executions = [Execution(number, batch, now, joins) for number, batch in enumerate(batches, self._last + 1)]
        requests = [request for batch in batches for request in batch.requests]
        words = [len(executions)]
        for execution in executions:
            words += (execution.id, len(execution.batch.requests))
        words.append(first)
        rows = input_rows(requests)
        wants = [None if request.outputs is None else tuple(request.outputs) for request in requests]
        kind = Kind.EXECUTE
        extras = {} if all([is_plain(request) for request in requests]) else request_extras(requests)
        ids = [request.id for request in requests]
        if any(ids):
            extras["ids"] = ids
        if any([is_laden(batch) for batch in batches]):
            kind = Kind.EXECUTE_LADEN
            more_words, more_extras, more_rows = laden_words(batches)
            words += more_words
            extras.update(more_extras)
            rows += more_rows
            wants += [None] * len(more_rows)
        if joins:
            extras["joins"] = True
        self._connection.send(kind, words, rows, wants, extras)
        # Only now: what could not be sent is nobody's.
        self._last += len(executions)
        self._requests += len(requests)
        self._instance = batches[0].instance
        self.open.update(enumerate(requests, first))
        for execution in executions:
            self.running[execution.id] = execution
            execution.batch.executing = True
        return [execution.id for execution in executions]

    def take(self, frame: Frame, over: Callable[[Sequence[Execution]], None]) -> None:
        """Call `over` with the executions that are over, then answer the requests that the worker answered. Raises ProtocolError.

        In this order, so that the worker has its next batch while the answers are sent.
        """
        words = frame.words
        try:
            done = self._done(words)
            at = 1 + 3 * len(done)
            runs = words[at]
            first = self.open.get(words[at + 1]) if runs else None
            place = PlacedRow if first is not None and first.sink.passes_on else None
            rows = self._connection.tensors(frame, at + 1 + 3 * runs, place)
            answered = self._answered(words, at, runs, len(rows))
        except IndexError as error:
            raise ProtocolError("an answer is cut short") from error
        extras = frame.extras if frame.has_extras else _NOTHING
        if extras:
            self._take_times(extras.get("times", {}))
            self._take_states(extras.get("states", {}), rows, len(answered))
        for execution in done:
            del self.running[execution.id]
            execution.batch.executing = False
        if done:
            over(done)
        self._answer(answered, rows, extras)
        if extras:
            for number in extras.get("reschedule", ()):
                request = self.open.pop(number, None)
                if request is not None:
                    request.reschedule()

    def caller(self, execution: int, request: int) -> tuple[Batch | None, InferRequest | None]:
        """Return the batch that runs as `execution` (0: none) and the open request of number `request` - 1 (0: that of the batch, if it is alone there).

        None for what is over. Raises ProtocolError for a number that was never given.
        """
        if execution > self._last or request > self._requests:
            raise ProtocolError(f"there never was an execution {execution}, or a request {request - 1}")
        running = self.running.get(execution)
        batch = None if running is None else running.batch
        if request:
            return batch, self.open.get(request - 1)
        if batch is not None and len(batch.requests) == 1:
            return batch, batch.requests[0]
        return batch, None

    def left_to_go_on(self) -> Batch | None:
        """Return what stands for code that no execution waits for: an execution of nothing; None where there never was another."""
        return None if self._instance is None else Batch([], model=self._model, instance=self._instance)

    def cancel(self, request: InferRequest) -> None:
        """Tell the worker that nobody waits for `request` any more; one whose execution has yet to begin is answered now."""
        numbers = [number for number, each in self.open.items() if each is request]
        if numbers:
            self._connection.send(Kind.CANCEL, numbers)
            if self._waits(request):
                del self.open[numbers[0]]
                request.respond(InferResponse.failed(request, Cancelled("Request cancelled")))

    def unfinished(self, begun: int) -> list[Batch]:
        """Forget and return, oldest first, the batches without an answer, except the one that was being executed.

        `begun` is the execution that began last. Those behind it did not begin. Those before it are over, and their answers
        are lost with the worker; a decoupled model may have sent some of them. What joined an execution shares its fate.
        """
        decoupled = self._model.config.model_transaction_policy.decoupled
        found = [
            execution
            for execution in self.running.values()
            if execution.id != begun and not execution.joined and (execution.id > begun or not decoupled)
        ]
        batches = [execution.batch for execution in found]
        for execution in found:
            execution.batch.executing = False
            del self.running[execution.id]
        again = {id(request) for batch in batches for request in batch.requests}
        self.open = {number: request for number, request in self.open.items() if id(request) not in again}
        return batches

    def give_up(self) -> list[InferRequest]:
        """Forget everything; return the requests that have no final answer."""
        left = [request for request in self.open.values() if not request.answered]
        for execution in self.running.values():
            execution.batch.executing = False
        self.open.clear()
        self.running.clear()
        return left

    def _waits(self, request: InferRequest) -> bool:
        """Say whether the worker has `request` in line behind an execution that runs, which is to say in its queue."""
        behind = list(self.running.values())[1:]
        return any(execution.batch is request.batch and not execution.joined for execution in behind)

    def _done(self, words: Sequence[int]) -> list[Execution]:
        done = []
        for index in range(1, 1 + 3 * words[0], 3):
            execution = self.running.get(words[index])
            if execution is None:
                raise ProtocolError(f"execution {words[index]} ended and was not running")
            execution.batch.input_end_ns, execution.batch.infer_end_ns = words[index + 1], words[index + 2]
            done.append(execution)
        return done

    @staticmethod
    def _answered(words: Sequence[int], at: int, runs: int, rows: int) -> list[tuple[int, int]]:
        """Return number and flags of each answer; `runs` neighbours with the same flags are one entry of `words` behind `at`."""
        count = sum(words[at + 2 : at + 1 + 3 * runs : 3])
        if count > rows:
            raise ProtocolError(f"{count} answers came with {rows} rows")
        return [
            (number, words[index + 2])
            for index in range(at + 1, at + 1 + 3 * runs, 3)
            for number in range(words[index], words[index] + words[index + 1])
        ]

    def _answer(
        self, answered: Sequence[tuple[int, int]], rows: Sequence[Sequence[Tensor]], extras: Mapping[str, Any]
    ) -> None:
        errors, parameters = extras.get("errors", {}), extras.get("parameters", {})
        name, version = self._model.name, self._model.version
        requests: list[InferRequest] = []
        responses: list[InferResponse] = []
        for index, (number, flags) in enumerate(answered):
            request = self.open.get(number)
            if request is None:  # given up meanwhile
                continue
            if flags & FINAL:
                del self.open[number]
            response = InferResponse(rows[index], name, version, request.id)
            if errors or parameters or flags != FINAL:
                _refine(response, flags, errors.get(str(index)), parameters.get(str(index)))
            requests.append(request)
            responses.append(response)
        if requests:
            requests[0].owner.answer(requests, responses)

    def _take_times(self, times: Mapping[str, Sequence[int]]) -> None:
        """Answers are counted when they come: those that go before the end of their execution bring its times along."""
        for number, (input_end_ns, infer_end_ns) in times.items():
            batch = self._batch_of(number)
            if batch is not None:
                batch.input_end_ns, batch.infer_end_ns = input_end_ns, infer_end_ns

    def _take_states(self, states: Mapping[str, int], rows: list[Sequence[Tensor]], at: int) -> None:
        for number, count in states.items():
            batch = self._batch_of(number)
            if batch is not None:
                batch.new_states.update({tensor.name: tensor for row in rows[at : at + count] for tensor in row})
            at += count

    def _batch_of(self, number: str) -> Batch | None:
        request = self.open.get(int(number))
        return None if request is None else request.batch


def _refine(response: InferResponse, flags: int, error: Any, parameters: Any) -> None:
    response.final, response.empty = bool(flags & FINAL), bool(flags & EMPTY)
    if error is not None:
        response.error = told_error(error, None if error[0] == Code.CANCELLED else FailureReason.BACKEND)
        response.outputs = ()
    response.parameters = parameters or NO_PARAMETERS
