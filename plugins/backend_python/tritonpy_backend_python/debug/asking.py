"""One request to the debugged model."""

from __future__ import annotations

from queue import Empty, SimpleQueue
from threading import Event

from tritonpy import CallbackSink, Engine, InferRequest, InferResponse, TritonError
from tritonpy_backend_python.debug.answer_text import answer_text
from tritonpy_backend_python.debug.request_file import FileRequest
from tritonpy_backend_python.debug.target import Target

_TICK_S = 0.1  # between two looks at whether the user wants to leave


def ask(engine: Engine, target: Target, said: FileRequest, ending: Event) -> int:
    """Send the request and print every answer; return the exit status: 1 where one is an error. Setting `ending` gives it up."""
    answers: SimpleQueue[InferResponse] = SimpleQueue()
    request = InferRequest(
        target.name,
        said.inputs,
        CallbackSink(lambda _, response: answers.put(response)),
        target.version,
        said.id,
        said.outputs,
        said.parameters,
        said.priority,
        said.timeout_us,
        sequence=said.sequence,
        accepts_decoupled=True,
        classifies=any(output.classification for output in (said.outputs or {}).values()),
    )
    try:
        engine.infer(request)
    except TritonError as error:
        answers.put(InferResponse.failed(request, error))
    status = 0
    while (answer := _next(answers, request, ending)) is not None:
        if not answer.empty:
            print(answer_text(answer), flush=True)
        if answer.error is not None:
            status = 1
        if answer.final:
            return status
    return 1


def _next(answers: SimpleQueue[InferResponse], request: InferRequest, ending: Event) -> InferResponse | None:
    while not ending.is_set():
        try:
            return answers.get(timeout=_TICK_S)
        except Empty:
            continue
    request.cancel()
    return None
