"""The server as seen by a model in its process."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from tritonpy import Batch, InferRequest, InferResponse, InstanceContext, ModelContext, TritonError
from tritonpy.execution import ModelLog, refused_model_call
from tritonpy.tracing import synthetic_parent
from tritonpy_backend_python.in_process.batch_requests import requests_of
from tritonpy_backend_python.in_process.calls import Calls
from tritonpy_backend_python.in_process.cleanup_thread import CleanupThread
from tritonpy_backend_python.in_process.inflight_requests import InflightRequests
from tritonpy_backend_python.in_process.responses import server_response
from tritonpy_backend_python.in_process.server_queries import ServerQueries
from tritonpy_backend_python.in_process.shared_arrays import LocalSharedArrays
from tritonpy_worker.api.errors import TritonModelException
from tritonpy_worker.call_responses import failed, only
from tritonpy_worker.context import (
    CURRENT_EXECUTION,
    ExecutionScope,
    blocks_loop,
    calling_execution,
    request_ids,
)
from tritonpy_worker.host import Host
from tritonpy_worker.task_flow_control import current_flow_control

if TYPE_CHECKING:
    from tritonpy_worker.api.call import CallSpec
    from tritonpy_worker.api.request import InferenceRequest
    from tritonpy_worker.api.response import InferenceResponse
    from tritonpy_worker.api.shared_arrays import Array, Named


class LocalHost(Host):
    """The engine's interface for one model instance in the server's process."""

    def __init__(self, model: ModelContext, instance: InstanceContext) -> None:
        self.name = instance.name
        self.model_directory = str(model.path)
        self.decoupled = model.config.model_transaction_policy.decoupled
        self.inflight = InflightRequests()
        self._outputs = tuple(output.name for output in model.config.output)
        self._log = ModelLog(model, instance)
        self._cleanup = CleanupThread(instance.name)
        self._queries = ServerQueries(model, self._cleanup)
        self._calls = Calls(model, self._parent, self.call_error, self._cleanup)
        self._shared_arrays = (
            model.shared if isinstance(model.shared, LocalSharedArrays) else LocalSharedArrays()
        )
        self._execution = 0
        self._batch: Batch | None = None  # the batch of the current execution
        # An empty batch for code that continues after its execution.
        self._background_batch: Batch | None = None

    def begin(self, batch: Batch) -> list[InferenceRequest]:
        """Begin an execution in the calling thread and return its requests.

        Raises `TritonModelException` if an input cannot be copied from its device.
        """
        self._execution += 1
        self._batch = batch
        if self._background_batch is None:
            self._background_batch = Batch([], model=batch.model, instance=batch.instance)
        first = self.inflight.add(batch.requests)
        CURRENT_EXECUTION.set(
            ExecutionScope(
                self._execution,
                first,
                len(batch.requests),
                [request.id for request in batch.requests],
            )
        )
        try:
            return requests_of(batch, first, self, self._outputs)
        except BaseException:
            for number in range(first, first + len(batch.requests)):
                self.inflight.end(number)
            raise

    def end(self) -> None:
        """End the execution: `execute` returned."""
        self._batch = None
        CURRENT_EXECUTION.set(None)

    def close(self) -> None:
        """Run the remaining cleanup functions."""
        self._calls.close()
        self._cleanup.end()

    def send(self, request: int, response: InferenceResponse | None, final: bool) -> None:
        try:
            sent = (
                InferResponse((), empty=True)
                if response is None
                else server_response(response, final=final)
            )
        except TritonModelException as error:
            self._send(request, server_response(failed(str(error)), final=final))
            raise
        self._send(request, sent)

    def reschedule(self, request: int) -> None:
        """Return a request to the scheduler."""
        received = self.inflight.end(request)
        if received is not None:
            received.reschedule()

    def respond_later(self, request: int) -> None:
        """Prepare for a sender that sends the final response later, or is deleted before that."""
        self._cleanup.begin()

    def abandon(self, request: int) -> None:
        self._cleanup.add(partial(self._end_abandoned, request))

    def is_cancelled(self, request: int) -> bool:
        received = self.inflight.get(request)
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
        received = self.inflight.get(request)
        return None if received is None or received.trace is None else str(received.trace)

    def share(self, key: str, build: Callable[[], Named]) -> dict[str, Array]:
        return self._shared_arrays.get(key, build)

    def log(self, level: str, message: str) -> None:
        self._log.log(level, message, request_ids())

    def query(self, verb: str, arguments: dict[str, Any]) -> Any:
        return self._queries.query(verb, arguments)

    def notify(self, verb: str, arguments: dict[str, Any]) -> None:
        self._queries.notify(verb, arguments)

    def respond(self, requests: Sequence[int], responses: Sequence[InferResponse]) -> None:
        """Send the final responses of requests, all at once."""
        if self._batch is not None:
            self._batch.stamp()
        pairs = [
            (self.inflight.end(number), response)
            for number, response in zip(requests, responses, strict=True)
        ]
        answers = [(request, response) for request, response in pairs if request is not None]
        if answers:
            answers[0][0].owner.respond(
                [request for request, _ in answers], [response for _, response in answers]
            )

    def call_error(self, name: str, error: TritonError) -> TritonError:
        """Return the error that the calling model gets if its call of `name` fails with `error`."""
        return refused_model_call(name, error)

    def _send(self, number: int, response: InferResponse) -> None:
        if not response.final:
            self.inflight.begin(number)
            self._wait_for_capacity(number)
        received = self.inflight.end(number) if response.final else self.inflight.get(number)
        if received is not None:
            received.respond(response)

    def _wait_for_capacity(self, number: int) -> None:
        received = self.inflight.get(number)
        if received is None or received.sink.ready(received):
            return
        flow_control = current_flow_control()
        if flow_control is None:
            received.wait_for_credit()
        else:
            flow_control.hold(number, partial(received.sink.when_ready, received))

    def _end_abandoned(self, number: int) -> None:
        self.end_abandoned(number, self.inflight.has_begun(number))

    def _parent(self, call: CallSpec) -> InferRequest | None:
        """Return the request that a call belongs to, or None.

        It is unknown in a batch of several requests. A synthetic parent then represents the
        execution, which waits for the call.
        """
        execution, number = calling_execution()
        if call.trace is not None:
            number = call.trace + 1
        parent = self.inflight.get(number - 1) if number else None
        batch = self._batch if execution == self._execution else None
        if parent is None and batch is None and blocks_loop():
            batch = self._background_batch
        if batch is None or batch.model is None or (parent is not None and parent.batch is batch):
            return parent
        waiting = synthetic_parent(batch.model.name, batch)
        if parent is not None:
            waiting.principal, waiting.headers, waiting.trace = (
                parent.principal,
                parent.headers,
                parent.trace,
            )
            waiting.deadline_ns = parent.deadline_ns
        return waiting
