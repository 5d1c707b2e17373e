"""What calls of ModelInfer end with: their answers, all that wait in one go."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable
from typing import TYPE_CHECKING

from tritonpy import DecoupledRefused, InferRequest, InferResponse, Internal, TritonError, TurnSink, Unsupported
from tritonpy_frontend_grpc.deadline import DeadlineExceeded, is_late
from tritonpy_frontend_grpc.encode import encode_response

if TYPE_CHECKING:
    from tritonpy_frontend_grpc.call import InferCall

NO_DECOUPLED = "ModelInfer RPC doesn't support models with decoupled transaction policy"


class AnswerSink(TurnSink):
    """For requests whose `tag` is their call: `end` is given what it ends with; `failure` says what that is where an answer cannot be written."""

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        end: Callable[[InferCall, bytes | TritonError], None],
        failure: Callable[[Exception], TritonError],
    ) -> None:
        super().__init__(loop)
        self._end = end
        self._failure = failure

    def deliver_waiting(self, waiting: deque[tuple[InferRequest, InferResponse]]) -> None:
        end = self._end
        while waiting:
            request, response = waiting.popleft()
            call: InferCall = request.tag
            if call.over:
                continue
            if not response.final:  # of a response sender: the call ends with the final answer, which may be empty
                call.answers += 1
                call.first = call.first or response
                continue
            try:
                if call.answers:
                    response = _only(call, response)
                plain = response.error is None and request.trace is None
                answer = encode_response(response) if plain else _answer(request, response)
            except Exception as error:
                answer = self._failure(error)
            end(call, answer)


def _only(call: InferCall, last: InferResponse) -> InferResponse:
    """Return the one answer of a call that had some before the final one. Raises Internal, with Triton's text, where it had several."""
    answers, first, call.first = call.answers + (not last.empty), call.first, None
    if answers != 1 or first is None:
        raise Internal(f"expected a single response, got {answers}")
    return first


def _answer(request: InferRequest, response: InferResponse) -> bytes | TritonError:
    error = response.error
    if error is not None and is_late(request, error):
        return DeadlineExceeded()
    if isinstance(error, DecoupledRefused):  # by an engine in another process
        return Unsupported(NO_DECOUPLED)
    if request.trace is not None:
        request.trace.stamp("GRPC_SEND_START")
    return encode_response(response) if error is None else error
