"""Where the requests of an execution go in a worker: into the next frame of answers."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from .answers import FINAL, Answers, row_of
from .api.errors import ErrorCode
from .api.request import InferenceRequest
from .api.response import InferenceResponse
from .api.response_sender import InferenceResponseSender
from .call_responses import failed
from .channel_host import ChannelHost
from .execution import Requests, Sink
from .open_requests import NULL_REQUEST


class FrameSink(Sink):
    """Collects, and lets the answered requests send nothing more."""

    def __init__(self, host: ChannelHost, answers: Answers) -> None:
        self._host = host
        self._answers = answers
        self._spent = InferenceResponseSender.spent(host)

    def answer(self, requests: Requests, responses: Sequence[InferenceResponse | None]) -> None:
        # All rows first: where one cannot be had, nothing was answered yet.
        rows = [
            () if response is None else row_of(response, request._wanted)
            for request, response in zip(requests, responses)
        ]
        for request, response, row in zip(requests, responses, rows):
            if response is not None:
                request._sender = self._spent
                self._answers.add(_number(request), response, row, FINAL)
        if self._host.open:
            self._end(request for request, response in zip(requests, responses) if response is not None)

    def fail(self, requests: Requests, text: str) -> None:
        response = failed(text)
        for request in requests:
            self._answers.add(_number(request), response, (), FINAL)
        self._end(requests)

    def refuse(self, request: InferenceRequest, text: str) -> None:
        """Answer a request that the model does not get to see."""
        request._sender = self._spent
        self._answers.add(_number(request), failed(text, ErrorCode.INVALID_ARG), (), FINAL)
        self._end((request,))

    def without_cancelled(self, requests: list[InferenceRequest]) -> list[InferenceRequest]:
        """Answer those that were cancelled before their execution began; return the others."""
        left = []
        for request in requests:
            if self._host.open.is_cancelled(_number(request)):
                request.get_response_sender().close()
                self._answers.add(_number(request), failed("Request cancelled", ErrorCode.CANCELLED), (), FINAL)
                self._end((request,))
            else:
                left.append(request)
        return left

    def reschedule(self, request: InferenceRequest) -> None:
        self._answers.reschedule(_number(request))
        self._end((request,))

    def leave_open(self, request: InferenceRequest) -> None:
        if _number(request) != NULL_REQUEST:
            self._host.open.leave(_number(request))
            self._host.abandoned.watch()

    def log(self, level: str, message: str) -> None:
        self._host.log(level, message)

    def _end(self, requests: Iterable[InferenceRequest]) -> None:
        self._host.open.end(map(_number, requests))


def _number(request: InferenceRequest) -> int:
    return request._number  # type: ignore[return-value] # only a request that the model makes has none
