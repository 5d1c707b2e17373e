"""One call of a model's `execute`, and what Triton's rules say of the result."""

from __future__ import annotations

from abc import ABC, abstractmethod
from asyncio import iscoroutine
from collections.abc import Sequence
from contextlib import suppress
from time import monotonic_ns
from typing import Any

from .api.constants import TRITONSERVER_REQUEST_RELEASE_RESCHEDULE, TRITONSERVER_RESPONSE_COMPLETE_FINAL
from .api.errors import TritonError, TritonModelException
from .api.request import InferenceRequest
from .api.response import InferenceResponse
from .api.response_sender import InferenceResponseSender
from .context import leave_execution
from .coroutines import Coroutines
from .failure import Refused, describe, failure_of
from .memory import Reserve

Requests = Sequence[InferenceRequest]


class Sink(ABC):
    """Where the requests of an execution go, each once. Called by the thread that executes."""

    @abstractmethod
    def answer(self, requests: Requests, responses: Sequence[InferenceResponse | None]) -> None:
        """Give the final answer of each request that has a response."""

    @abstractmethod
    def fail(self, requests: Requests, text: str) -> None:
        """Answer all of them with the same error."""

    @abstractmethod
    def reschedule(self, request: InferenceRequest) -> None:
        """Hand it back to the scheduler."""

    @abstractmethod
    def leave_open(self, request: InferenceRequest) -> None:
        """Its sender will answer it, or end without."""

    @abstractmethod
    def log(self, level: str, message: str) -> None:
        """Write to the server's log."""


class Executor:
    """Executes batches on one model instance, one after the other. `model` is the object, `path` the file of its class."""

    def __init__(
        self,
        model: Any,
        path: str,
        name: str,
        decoupled: bool,
        sink: Sink,
        coroutines: Coroutines,
        reserve: Reserve,
    ) -> None:
        self._model = model
        self._path = path
        self._name = name
        self._decoupled = decoupled
        self._sink = sink
        self._coroutines = coroutines
        self._reserve = reserve
        self.end_ns = 0  # when `execute` returned last

    def run(self, requests: list[InferenceRequest]) -> None:
        """Execute; hand every request to the sink, whatever the model does."""
        kept = tuple(requests)  # the list is the model's
        counted: list[InferenceRequest] = []
        try:
            try:
                returned = self._execute(requests)
            finally:
                self.end_ns = monotonic_ns()
            if returned is None:
                self._let_go(kept)
            else:
                self._check(kept, returned, counted)
                self._sink.answer(kept, returned)
                if None in returned:
                    self._let_go([request for request, each in zip(kept, returned) if each is None])
        except BaseException as error:  # SystemExit as well: it ends the batch, not the worker
            self._fail(kept, counted, error)

    def _execute(self, requests: list[InferenceRequest]) -> Any:
        execute = getattr(self._model, "execute", None)
        if execute is None:
            raise Refused(f"Python model {self._path} does not implement `execute` method.")
        returned = execute(requests)
        if returned.__class__ is list or not iscoroutine(returned):
            return returned
        if not self._decoupled:
            return self._coroutines.run(returned)
        senders = [request.get_response_sender() for request in requests]
        self._coroutines.start(self._watched(returned, senders))
        return None

    async def _watched(self, coroutine: Any, senders: Sequence[InferenceResponseSender]) -> None:
        leave_execution()
        try:
            await coroutine
        except BaseException as error:
            response = InferenceResponse(error=TritonError(self._told(error)))
            for sender in senders:
                with suppress(TritonModelException):  # it has had its final answer
                    sender.send(response, TRITONSERVER_RESPONSE_COMPLETE_FINAL)

    def _check(self, requests: Requests, returned: Any, counted: list[InferenceRequest]) -> None:
        if self._decoupled:
            raise Refused(
                f"Python model '{self._name}' is using the decoupled mode and the execute function must return None."
            )
        if not isinstance(returned, list):
            raise Refused(f"Expected a list in the execute return, found type '{type(returned)}'.")
        if len(returned) != len(requests):
            raise Refused(
                "Number of InferenceResponse objects do not match the number of InferenceRequest objects. "
                f"InferenceRequest(s) size is:{len(requests)}, and InferenceResponse(s) size is:{len(returned)}\n"
            )
        for request, response in zip(requests, returned):
            if response is None:
                continue
            if request._release_flags == TRITONSERVER_REQUEST_RELEASE_RESCHEDULE:
                raise Refused(
                    "Expected a None object in the execute function return list for reschduled request, "
                    f"found type '{type(response)}'."
                )
            if not isinstance(response, InferenceResponse):
                raise Refused(
                    "Expected an 'InferenceResponse' object in the execute function return list, "
                    f"found type '{type(response)}'."
                )
            if request._sender is not None:
                self._count(request._sender, response)
                counted.append(request)

    @staticmethod
    def _count(sender: InferenceResponseSender, response: InferenceResponse) -> None:
        try:
            sender.count(response, True)
        except TritonModelException as error:
            raise Refused(str(error)) from None

    def _let_go(self, requests: Requests) -> None:
        for request in requests:
            if request.release_flags == TRITONSERVER_REQUEST_RELEASE_RESCHEDULE:
                request.get_response_sender().close()
                self._sink.reschedule(request)
            elif not request.get_response_sender().closed:
                self._sink.leave_open(request)

    def _fail(self, requests: Requests, counted: Requests, error: BaseException) -> None:
        with self._reserve.spent_on(error):
            text = self._told(error)
        failed = []
        for request in requests:
            sender = request.get_response_sender()
            if request in counted or not sender.closed:
                sender.close()
                failed.append(request)
        self._sink.fail(failed, text)

    def _told(self, error: BaseException) -> str:
        text = failure_of(self._name) + describe(error)
        self._sink.log("ERROR", text)
        return text
