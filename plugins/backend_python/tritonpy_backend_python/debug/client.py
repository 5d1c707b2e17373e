"""A request to the debugged model."""

from __future__ import annotations

from queue import Empty, SimpleQueue
from threading import Event

from tritonpy import CallbackSink, Engine, InferRequest, InferResponse, TritonError
from tritonpy_backend_python.debug.request_file import FileRequest
from tritonpy_backend_python.debug.response_text import response_text
from tritonpy_backend_python.debug.target import DebugTarget

_TICK_S = 0.1  # interval of checks whether the user wants to quit


def send_request(
    engine: Engine, target: DebugTarget, file_request: FileRequest, stop_event: Event
) -> int:
    """Send the request and print every response.

    Return the exit status, 1 if a response is an error. Setting `stop_event` cancels the request.
    """
    responses: SimpleQueue[InferResponse] = SimpleQueue()
    request = InferRequest(
        target.name,
        file_request.inputs,
        CallbackSink(lambda _, response: responses.put(response)),
        target.version,
        file_request.id,
        file_request.outputs,
        file_request.parameters,
        file_request.priority,
        file_request.timeout_us,
        sequence=file_request.sequence,
        accepts_decoupled=True,
        classifies=any(output.classification for output in (file_request.outputs or {}).values()),
    )
    try:
        engine.infer(request)
    except TritonError as error:
        responses.put(InferResponse.failed(request, error))
    status = 0
    while (response := _next(responses, request, stop_event)) is not None:
        if not response.empty:
            print(response_text(response), flush=True)
        if response.error is not None:
            status = 1
        if response.final:
            return status
    return 1


def _next(
    responses: SimpleQueue[InferResponse], request: InferRequest, stop_event: Event
) -> InferResponse | None:
    while not stop_event.is_set():
        try:
            return responses.get(timeout=_TICK_S)
        except Empty:
            continue
    request.cancel()
    return None
