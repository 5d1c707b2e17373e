"""Where the requests of an execution go: straight to whoever asked."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from tritonpy_backend_python.in_process.host import LocalHost
from tritonpy_backend_python.in_process.responses import to_send
from tritonpy_worker.api.response_sender import InferenceResponseSender
from tritonpy_worker.call_responses import failed
from tritonpy_worker.execution import Requests, Sink
from tritonpy_worker.open_requests import NULL_REQUEST

if TYPE_CHECKING:
    from tritonpy_worker.api.request import InferenceRequest
    from tritonpy_worker.api.response import InferenceResponse


class LocalSink(Sink):
    """Answers, and lets the answered requests send nothing more."""

    def __init__(self, host: LocalHost) -> None:
        self._host = host
        self._spent = InferenceResponseSender.spent(host)

    def answer(self, requests: Requests, responses: Sequence[InferenceResponse | None]) -> None:
        given = [
            (request, to_send(response, request.wanted))
            for request, response in zip(requests, responses, strict=True)
            if response is not None and request.number != NULL_REQUEST
        ]
        for request, _ in given:
            request._sender = self._spent
        self._host.answer([_number(request) for request, _ in given], [response for _, response in given])

    def fail(self, requests: Requests, text: str) -> None:
        numbers = [_number(request) for request in requests if request.number != NULL_REQUEST]
        self._host.answer(numbers, [to_send(failed(text)) for _ in numbers])

    def reschedule(self, request: InferenceRequest) -> None:
        if request.number != NULL_REQUEST:
            self._host.reschedule(_number(request))

    def leave_open(self, request: InferenceRequest) -> None:
        if request.number != NULL_REQUEST:
            self._host.leave_open(_number(request))

    def log(self, level: str, message: str) -> None:
        self._host.log(level, message)


def _number(request: InferenceRequest) -> int:
    number = request.number
    assert number is not None, "only a request that a model makes has no number: this is a bug"  # noqa: S101
    return number
