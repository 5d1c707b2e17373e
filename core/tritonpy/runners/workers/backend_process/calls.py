"""Requests to other models of the server that are on their way."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from itertools import count
from queue import SimpleQueue
from threading import Lock, Thread
from typing import Any

from tritonpy.errors import Internal
from tritonpy.ipc import Frame, Kind
from tritonpy.ipc.channel import Channel
from tritonpy.ipc.taken import Taken
from tritonpy.runners.workers.backend_process.answer_frame import EMPTY, FINAL
from tritonpy.runners.workers.backend_process.execution import Execution
from tritonpy.runners.workers.on_host import on_host
from tritonpy.runners.workers.told_error import told_named_error
from tritonpy.types import NO_PARAMETERS, InferRequest, InferResponse, Tensor

log = logging.getLogger("tritonpy.model")


class Calls:
    """The requests that other models own now, by number; `awaited` is true while there are any.

    Their answers go to their sinks on a thread of its own, because a sink may run the backend's code. One that a sink took while it had
    no room counts as taken once it has: until then the other model is held back.
    """

    def __init__(self, channel: Channel, executions: Mapping[int, Execution], hurry: Callable[[], None]) -> None:
        self._channel = channel
        self._executions = executions  # by the numbers of the requests that this worker has to answer
        self._hurry = hurry
        self._numbers = count(1)
        self._open: dict[int, InferRequest] = {}
        self._due: SimpleQueue[Callable[[], None]] = SimpleQueue()
        self._taken: dict[int, Taken] = {}  # by the numbers of open calls that were answered and not for good
        self._starting = Lock()
        self._started = False
        channel.on(Kind.CALL_ANSWER, self._answered)

    def awaited(self) -> bool:
        """Say whether answers are due."""
        return bool(self._open)

    def make(self, request: InferRequest) -> None:
        """Send `request` to its model; what refuses it comes back as its answer. Raises Internal where shared memory cannot be had."""
        self._start()
        number = next(self._numbers)
        owner, request.owner = request.owner, _CallOwner(self, number)
        self._open[number] = request
        wants = None if request.outputs is None else tuple(request.outputs)
        try:
            rows = [on_host(request.inputs.values())]
            self._channel.send(Kind.CALL, [number, *self._caller(request)], rows, [wants], _extras(request))
        except (OSError, MemoryError) as error:
            del self._open[number]
            request.owner = owner
            raise Internal(f"no memory for the inputs of model '{request.model_name}': {error}") from error
        self._hurry()

    def cancel(self, number: int) -> None:
        """Pass a cancellation on."""
        if number in self._open:
            self._channel.send(Kind.CALL_CANCEL, [number])

    def _caller(self, request: InferRequest) -> tuple[int, int]:
        parent = request.parent
        execution = None if parent is None else self._executions.get(parent.tag)
        return (0, 0) if parent is None or execution is None else (execution.number, parent.tag + 1)

    def _answered(self, frame: Frame) -> None:
        number, flags = frame.words[:2]
        rows, _ = self._channel.rows(frame, 2, Tensor)
        final = bool(flags & FINAL)
        request = self._open.pop(number, None) if final else self._open.get(number)
        if request is None:
            return
        said = frame.extras if frame.has_extras else {}
        response = InferResponse(
            rows[0] if rows else (),
            request.model_name,
            said.get("version", request.model_version),
            request.id,
            said.get("parameters", NO_PARAMETERS),
            told_named_error(said["error"]) if "error" in said else None,
            final,
            bool(flags & EMPTY),
        )
        self._due.put(partial(self._deliver, number, request, response))

    def _start(self) -> None:
        with self._starting:
            if not self._started:
                self._started = True
                Thread(target=self._run, name="answers of other models", daemon=True).start()

    def _run(self) -> None:
        while True:
            self._due.get()()  # nothing holds it afterwards: its buffers are shared memory of the server

    def _deliver(self, number: int, request: InferRequest, response: InferResponse) -> None:
        request.answered = response.final
        try:
            request.sink.put(request, response)
        except Exception:
            log.exception("the sink of a request to model %s failed", request.model_name)
        if response.final:
            self._taken.pop(number, None)
            return
        nbytes = sum([tensor.nbytes for tensor in response.outputs])
        if request.sink.ready(request):
            self._took(number, nbytes)
        else:
            request.sink.when_ready(request, lambda: self._due.put(partial(self._took, number, nbytes)))

    def _took(self, number: int, nbytes: int) -> None:
        if number not in self._open:
            return
        told = self._taken.setdefault(number, Taken()).add(nbytes)
        if told:
            self._channel.send(Kind.CALL_TAKEN, [number, told])


class _CallOwner:
    """Owns a request here while the model that runs it is elsewhere."""

    def __init__(self, calls: Calls, number: int) -> None:
        self._calls = calls
        self._number = number

    def answer(self, requests: Sequence[InferRequest], responses: Sequence[InferResponse]) -> None:
        raise AssertionError("only the other model answers: this is a bug")

    def reschedule(self, request: InferRequest) -> None:
        raise AssertionError("only the other model reschedules: this is a bug")

    def cancel(self, request: InferRequest) -> None:
        self._calls.cancel(self._number)


def _extras(request: InferRequest) -> dict[str, Any]:
    sequence = request.sequence
    said: dict[str, Any] = {
        "plain": True,
        "model": request.model_name,
        "version": request.model_version,
        "id": request.id,
        "parameters": dict(request.parameters),
        "sequence": None if sequence is None else [sequence.id, sequence.start, sequence.end],
        "timeout_us": request.timeout_us,
        "deadline_ns": request.deadline_ns,
        "priority": request.priority,
        "decoupled": request.accepts_decoupled,
        "trace": request.trace is not None,
    }
    if request.classifies and request.outputs is not None:
        said["classes"] = {spec.name: spec.classification for spec in request.outputs.values() if spec.classification}
    return {name: value for name, value in said.items() if value}
