"""Calls of a model's `execute`, and Triton's rules for the results."""

from __future__ import annotations

from abc import ABC, abstractmethod
from asyncio import iscoroutine
from collections.abc import Sequence
from contextlib import suppress
from time import monotonic_ns
from typing import Any

from .api.constants import (
    TRITONSERVER_REQUEST_RELEASE_RESCHEDULE,
    TRITONSERVER_RESPONSE_COMPLETE_FINAL,
)
from .api.errors import TritonError, TritonModelException
from .api.request import InferenceRequest
from .api.response import InferenceResponse
from .api.response_sender import InferenceResponseSender
from .context import mark_background
from .coroutines import Coroutines
from .failure import ModelContractError, describe_error, failure_prefix
from .memory import Reserve

Requests = Sequence[InferenceRequest]


class WorkerSink(ABC):
    """Receives the outcome of each request of an execution, exactly once per request.

    The executing thread calls the methods.
    """

    @abstractmethod
    def respond(self, requests: Requests, responses: Sequence[InferenceResponse | None]) -> None:
        """Send the final response of each request that has one."""

    @abstractmethod
    def fail(self, requests: Requests, text: str) -> None:
        """Send the same error for all requests."""

    @abstractmethod
    def reschedule(self, request: InferenceRequest) -> None:
        """Return the request to the scheduler."""

    @abstractmethod
    def respond_later(self, request: InferenceRequest) -> None:
        """Expect the final response later from the request's sender, or the sender's deletion."""

    @abstractmethod
    def log(self, level: str, message: str) -> None:
        """Write to the server's log."""


class Executor:
    """Executes batches on one model instance sequentially.

    `model` is the initialized object of the model, `path` the file of its class.
    """

    def __init__(
        self,
        model: Any,
        path: str,
        name: str,
        decoupled: bool,
        sink: WorkerSink,
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
        self.end_ns = 0  # when `execute` last returned

    def run(self, requests: list[InferenceRequest]) -> None:
        """Execute the requests. Each of them reaches the sink, even if the model fails."""
        kept = tuple(requests)  # the model may change the list
        counted: list[InferenceRequest] = []
        try:
            try:
                returned = self._execute(requests)
            finally:
                self.end_ns = monotonic_ns()
            if returned is None:
                self._release_requests(kept)
            else:
                self._check(kept, returned, counted)
                self._sink.respond(kept, returned)
                if None in returned:
                    self._release_requests(
                        [request for request, each in zip(kept, returned) if each is None]
                    )
        # Including SystemExit, which ends the batch but not the worker.
        except BaseException as error:
            self._fail(kept, counted, error)

    def _execute(self, requests: list[InferenceRequest]) -> Any:
        execute = getattr(self._model, "execute", None)
        if execute is None:
            raise ModelContractError(
                f"Python model {self._path} does not implement `execute` method."
            )
        returned = execute(requests)
        if returned.__class__ is list or not iscoroutine(returned):
            return returned
        if not self._decoupled:
            return self._coroutines.run(returned)
        senders = [request.get_response_sender() for request in requests]
        self._coroutines.start(self._watched(returned, senders))
        return None

    async def _watched(self, coroutine: Any, senders: Sequence[InferenceResponseSender]) -> None:
        mark_background()
        try:
            await coroutine
        except BaseException as error:
            response = InferenceResponse(error=TritonError(self._log_failure(error)))
            for sender in senders:
                with suppress(TritonModelException):  # it already had its final response
                    sender.send(response, TRITONSERVER_RESPONSE_COMPLETE_FINAL)

    def _check(self, requests: Requests, returned: Any, counted: list[InferenceRequest]) -> None:
        if self._decoupled:
            raise ModelContractError(
                f"Python model '{self._name}' is using the decoupled mode and the execute "
                "function must return None."
            )
        if not isinstance(returned, list):
            raise ModelContractError(
                f"Expected a list in the execute return, found type '{type(returned)}'."
            )
        if len(returned) != len(requests):
            raise ModelContractError(
                "Number of InferenceResponse objects do not match the number of InferenceRequest "
                "objects. "
                f"InferenceRequest(s) size is:{len(requests)}, and InferenceResponse(s) size "
                f"is:{len(returned)}\n"
            )
        for request, response in zip(requests, returned):
            if response is None:
                continue
            if request._release_flags == TRITONSERVER_REQUEST_RELEASE_RESCHEDULE:
                raise ModelContractError(
                    "Expected a None object in the execute function return list for reschduled "
                    "request, "
                    f"found type '{type(response)}'."
                )
            if not isinstance(response, InferenceResponse):
                raise ModelContractError(
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
            raise ModelContractError(str(error)) from None

    def _release_requests(self, requests: Requests) -> None:
        for request in requests:
            if request.release_flags == TRITONSERVER_REQUEST_RELEASE_RESCHEDULE:
                request.get_response_sender().close()
                self._sink.reschedule(request)
            elif not request.get_response_sender().closed:
                self._sink.respond_later(request)

    def _fail(self, requests: Requests, counted: Requests, error: BaseException) -> None:
        with self._reserve.released_for(error):
            text = self._log_failure(error)
        failed = []
        for request in requests:
            sender = request.get_response_sender()
            if request in counted or not sender.closed:
                sender.close()
                failed.append(request)
        self._sink.fail(failed, text)

    def _log_failure(self, error: BaseException) -> str:
        text = failure_prefix(self._name) + describe_error(error)
        self._sink.log("ERROR", text)
        return text
