"""The sink of an execution in a worker, which collects responses for the next frame."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from .api.errors import ErrorCode
from .api.request import InferenceRequest
from .api.response import InferenceResponse
from .api.response_sender import InferenceResponseSender
from .call_responses import failed
from .channel_host import ChannelHost
from .execution import Requests, WorkerSink
from .inflight_requests import NULL_REQUEST
from .response_frame import FINAL, ResponseFrame, output_row


class FrameSink(WorkerSink):
    """Collects responses, and closes the senders of their requests."""

    def __init__(self, host: ChannelHost, answers: ResponseFrame) -> None:
        self._host = host
        self._answers = answers
        self._closed_sender = InferenceResponseSender.closed_after_one(host)

    def respond(self, requests: Requests, responses: Sequence[InferenceResponse | None]) -> None:
        # Create all rows first: if one fails, no response has been added yet.
        rows = [
            () if response is None else output_row(response, request._output_names)
            for request, response in zip(requests, responses)
        ]
        for request, response, row in zip(requests, responses, rows):
            if response is not None:
                request._sender = self._closed_sender
                self._answers.add(_number(request), response, row, FINAL)
        if self._host.inflight:
            self._end(
                request for request, response in zip(requests, responses) if response is not None
            )

    def fail(self, requests: Requests, text: str) -> None:
        response = failed(text)
        for request in requests:
            self._answers.add(_number(request), response, (), FINAL)
        self._end(requests)

    def refuse(self, request: InferenceRequest, text: str) -> None:
        """Add an error for a request that the model does not get."""
        request._sender = self._closed_sender
        self._answers.add(_number(request), failed(text, ErrorCode.INVALID_ARG), (), FINAL)
        self._end((request,))

    def drop_cancelled(self, requests: list[InferenceRequest]) -> list[InferenceRequest]:
        """Add errors for requests that were cancelled before their execution. Return the others."""
        left = []
        for request in requests:
            if self._host.inflight.is_cancelled(_number(request)):
                request.get_response_sender().close()
                self._answers.add(
                    _number(request), failed("Request cancelled", ErrorCode.CANCELLED), (), FINAL
                )
                self._end((request,))
            else:
                left.append(request)
        return left

    def reschedule(self, request: InferenceRequest) -> None:
        self._answers.reschedule(_number(request))
        self._end((request,))

    def respond_later(self, request: InferenceRequest) -> None:
        if _number(request) != NULL_REQUEST:
            self._host.inflight.mark_unfinished(_number(request))
            self._host.abandoned.watch()

    def log(self, level: str, message: str) -> None:
        self._host.log(level, message)

    def _end(self, requests: Iterable[InferenceRequest]) -> None:
        self._host.inflight.end(map(_number, requests))


def _number(request: InferenceRequest) -> int:
    return request._number  # type: ignore[return-value] # only requests that the model makes have none
