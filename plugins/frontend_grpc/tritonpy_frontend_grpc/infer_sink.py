"""The sink for responses of ModelInfer calls."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable
from typing import TYPE_CHECKING

from tritonpy import (
    DecoupledRefused,
    InferRequest,
    InferResponse,
    Internal,
    TritonError,
    Unsupported,
)
from tritonpy.frontend import LoopQueueSink
from tritonpy_frontend_grpc.deadline import DeadlineExceeded, is_late
from tritonpy_frontend_grpc.encode import encode_response

if TYPE_CHECKING:
    from tritonpy_frontend_grpc.call import InferCall

DECOUPLED_UNSUPPORTED = "ModelInfer RPC doesn't support models with decoupled transaction policy"


class InferResponseSink(LoopQueueSink):
    """Delivers responses to their calls, all waiting ones once per event-loop iteration.

    The `tag` of a request is its call.

    `end` receives each call with its response message or error. `to_triton_error` converts an
    exception that occurs while a response is encoded.
    """

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        end: Callable[[InferCall, bytes | TritonError], None],
        to_triton_error: Callable[[Exception], TritonError],
    ) -> None:
        super().__init__(loop)
        self._end = end
        self._to_triton_error = to_triton_error

    def deliver_waiting(self, waiting: deque[tuple[InferRequest, InferResponse]]) -> None:
        end = self._end
        while waiting:
            request, response = waiting.popleft()
            call: InferCall = request.tag
            if call.over:
                continue
            if (
                not response.final
            ):  # from a response sender: the final response ends the call and may be empty
                call.responses += 1
                call.first_response = call.first_response or response
                continue
            try:
                if call.responses:
                    response = _single_response(call, response)
                plain = response.error is None and request.trace is None
                result = encode_response(response) if plain else _encode_result(request, response)
            except Exception as error:
                result = self._to_triton_error(error)
            end(call, result)


def _single_response(call: InferCall, last: InferResponse) -> InferResponse:
    """Return the only response of a call with non-final responses.

    Raises Internal if it had several.
    """
    responses, first_response, call.first_response = (
        call.responses + (not last.empty),
        call.first_response,
        None,
    )
    if responses != 1 or first_response is None:
        raise Internal(f"expected a single response, got {responses}")
    return first_response


def _encode_result(request: InferRequest, response: InferResponse) -> bytes | TritonError:
    error = response.error
    if error is not None and is_late(request, error):
        return DeadlineExceeded()
    if isinstance(error, DecoupledRefused):  # raised by an engine in another process
        return Unsupported(DECOUPLED_UNSUPPORTED)
    if request.trace is not None:
        request.trace.stamp("GRPC_SEND_START")
    return encode_response(response) if error is None else error
