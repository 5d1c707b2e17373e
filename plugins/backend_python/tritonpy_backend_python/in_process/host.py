"""The server as a model of its own process sees it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from tritonpy import (
    Batch,
    InferRequest,
    InferResponse,
    InstanceContext,
    ModelContext,
    ModelLog,
    TritonError,
    refused_model_call,
    stand_in,
)
from tritonpy_backend_python.in_process.calls import Calls
from tritonpy_backend_python.in_process.errands import Errands
from tritonpy_backend_python.in_process.open_requests import OpenRequests
from tritonpy_backend_python.in_process.questions import Questions
from tritonpy_backend_python.in_process.receiving import requests_of
from tritonpy_backend_python.in_process.responses import to_send
from tritonpy_backend_python.in_process.shares import LocalShares
from tritonpy_worker.api.errors import TritonModelException
from tritonpy_worker.call_responses import failed, only
from tritonpy_worker.context import CURRENT, Current, caller, request_ids, stops_loop
from tritonpy_worker.host import Host
from tritonpy_worker.pace import current_pace

if TYPE_CHECKING:
    from tritonpy_worker.api.call import CallSpec
    from tritonpy_worker.api.request import InferenceRequest
    from tritonpy_worker.api.response import InferenceResponse
    from tritonpy_worker.api.shared_arrays import Array, Named


class LocalHost(Host):
    """Speaks to the engine of the process, for one instance."""

    def __init__(self, model: ModelContext, instance: InstanceContext) -> None:
        self.name = instance.name
        self.model_directory = str(model.path)
        self.decoupled = model.config.model_transaction_policy.decoupled
        self.open = OpenRequests()
        self._outputs = tuple(output.name for output in model.config.output)
        self._log = ModelLog(model, instance)
        self._errands = Errands(instance.name)
        self._questions = Questions(model, self._errands)
        self._calls = Calls(model, self._parent, self.refused, self._errands)
        self._shares = model.shared if isinstance(model.shared, LocalShares) else LocalShares()
        self._execution = 0
        self._batch: Batch | None = None  # what is executed now, under that number
        self._left: Batch | None = None  # stands for what goes on without an execution: one of nothing

    def begin(self, batch: Batch) -> list[InferenceRequest]:
        """Return the requests of an execution that begins now; the calling thread is known by it until `end`.

        Raises TritonModelException where an input cannot be had from its device.
        """
        self._execution += 1
        self._batch = batch
        if self._left is None:
            self._left = Batch([], model=batch.model, instance=batch.instance)
        first = self.open.add(batch.requests)
        CURRENT.set(Current(self._execution, first, len(batch.requests), [request.id for request in batch.requests]))
        try:
            return requests_of(batch, first, self, self._outputs)
        except BaseException:
            for number in range(first, first + len(batch.requests)):
                self.open.end(number)
            raise

    def end(self) -> None:
        """Take note that `execute` returned."""
        self._batch = None
        CURRENT.set(None)

    def close(self) -> None:
        """Run what destructors left to be done."""
        self._calls.close()
        self._errands.end()

    def send(self, request: int, response: InferenceResponse | None, final: bool) -> None:
        try:
            sent = InferResponse((), empty=True) if response is None else to_send(response, final=final)
        except TritonModelException as error:
            self._send(request, to_send(failed(str(error)), final=final))
            raise
        self._send(request, sent)

    def reschedule(self, request: int) -> None:
        """Hand a request back to the scheduler."""
        received = self.open.end(request)
        if received is not None:
            received.reschedule()

    def leave_open(self, request: int) -> None:
        """Take note that a request has no final answer though `execute` returned: its sender's end is to be noticed."""
        self._errands.begin()

    def abandon(self, request: int) -> None:
        self._errands.add(partial(self._end_abandoned, request))

    def is_cancelled(self, request: int) -> bool:
        received = self.open.get(request)
        return received is not None and received.cancelled

    def call(self, call: CallSpec) -> InferenceResponse:
        self.check_executing()
        return only(next(self._calls.start(call)))

    def call_stream(self, call: CallSpec) -> Iterator[InferenceResponse]:
        self.check_executing()
        return self._calls.start(call)

    async def call_async(self, call: CallSpec) -> Any:
        self.check_executing()
        started = self._calls.start_on(asyncio.get_running_loop(), call)
        await started.first.future
        return started if call.decoupled else only(next(started))

    def trace_context(self, request: int) -> str | None:
        received = self.open.get(request)
        return None if received is None or received.trace is None else str(received.trace)

    def share(self, key: str, build: Callable[[], Named]) -> dict[str, Array]:
        return self._shares.get(key, build)

    def log(self, level: str, message: str) -> None:
        self._log.say(level, message, request_ids())

    def ask(self, verb: str, arguments: dict[str, Any]) -> Any:
        return self._questions.ask(verb, arguments)

    def tell(self, verb: str, arguments: dict[str, Any]) -> None:
        self._questions.tell(verb, arguments)

    def answer(self, requests: Sequence[int], responses: Sequence[InferResponse]) -> None:
        """Give each request its final answer, all at once."""
        if self._batch is not None:
            self._batch.stamp()
        pairs = [(self.open.end(number), response) for number, response in zip(requests, responses, strict=True)]
        answers = [(request, response) for request, response in pairs if request is not None]
        if answers:
            answers[0][0].owner.answer([request for request, _ in answers], [response for _, response in answers])

    def refused(self, name: str, error: TritonError) -> TritonError:
        """Return what the model is told whose call of the model `name` failed with `error`."""
        return refused_model_call(name, error)

    def _send(self, number: int, response: InferResponse) -> None:
        if not response.final:
            self.open.begin(number)
            self._wait_for_room(number)
        received = self.open.end(number) if response.final else self.open.get(number)
        if received is not None:
            received.respond(response)

    def _wait_for_room(self, number: int) -> None:
        received = self.open.get(number)
        if received is None or received.sink.ready(received):
            return
        pace = current_pace()
        if pace is None:
            received.wait_for_room()
        else:
            pace.hold(number, partial(received.sink.when_ready, received))

    def _end_abandoned(self, number: int) -> None:
        self.end_abandoned(number, self.open.has_begun(number))

    def _parent(self, call: CallSpec) -> InferRequest | None:
        """Return the request that a call is made for. One of several in a batch cannot be told: then one stands for the execution, which waits."""
        execution, number = caller()
        if call.trace is not None:
            number = call.trace + 1
        parent = self.open.get(number - 1) if number else None
        batch = self._batch if execution == self._execution else None
        if parent is None and batch is None and stops_loop():
            batch = self._left
        if batch is None or batch.model is None or (parent is not None and parent.batch is batch):
            return parent
        waiting = stand_in(batch.model.name, batch)
        if parent is not None:
            waiting.principal, waiting.headers, waiting.trace = parent.principal, parent.headers, parent.trace
            waiting.deadline_ns = parent.deadline_ns
        return waiting
