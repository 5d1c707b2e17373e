"""The sink of an execution in the server's process, which responds directly."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from tritonpy_backend_python.in_process.host import LocalHost
from tritonpy_backend_python.in_process.responses import server_response
from tritonpy_worker.api.response_sender import InferenceResponseSender
from tritonpy_worker.call_responses import failed
from tritonpy_worker.execution import Requests, WorkerSink
from tritonpy_worker.inflight_requests import NULL_REQUEST

if TYPE_CHECKING:
    from tritonpy_worker.api.request import InferenceRequest
    from tritonpy_worker.api.response import InferenceResponse


class LocalSink(WorkerSink):
    """Sends responses, and closes the senders of their requests."""

    def __init__(self, host: LocalHost) -> None:
        self._host = host
        self._closed_sender = InferenceResponseSender.closed_after_one(host)

    def respond(self, requests: Requests, responses: Sequence[InferenceResponse | None]) -> None:
        given = [
            (request, server_response(response, request.output_names))
            for request, response in zip(requests, responses, strict=True)
            if response is not None and request.number != NULL_REQUEST
        ]
        for request, _ in given:
            request._sender = self._closed_sender
        self._host.respond(
            [_number(request) for request, _ in given], [response for _, response in given]
        )

    def fail(self, requests: Requests, text: str) -> None:
        numbers = [_number(request) for request in requests if request.number != NULL_REQUEST]
        self._host.respond(numbers, [server_response(failed(text)) for _ in numbers])

    def reschedule(self, request: InferenceRequest) -> None:
        if request.number != NULL_REQUEST:
            self._host.reschedule(_number(request))

    def respond_later(self, request: InferenceRequest) -> None:
        if request.number != NULL_REQUEST:
            self._host.respond_later(_number(request))

    def log(self, level: str, message: str) -> None:
        self._host.log(level, message)


def _number(request: InferenceRequest) -> int:
    number = request.number
    assert number is not None, "bug: only requests that a model makes have no number"  # noqa: S101
    return number
