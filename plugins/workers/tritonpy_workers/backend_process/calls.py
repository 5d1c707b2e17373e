"""Calls to other models of the server."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from itertools import count
from queue import SimpleQueue
from threading import Lock, Thread
from typing import Any

from tritonpy import InferRequest, InferResponse, Internal, Tensor
from tritonpy.frontend import NO_PARAMETERS
from tritonpy_engine_rpc.host_tensors import to_host
from tritonpy_engine_rpc.messages import decode_named_error
from tritonpy_ipc import Frame, Kind
from tritonpy_ipc.channel import Channel
from tritonpy_ipc.credit_counter import CreditCounter
from tritonpy_workers.backend_process.execution import ReceivedExecution
from tritonpy_workers.backend_process.response_frame import EMPTY, FINAL

log = logging.getLogger("tritonpy.model")


class RemoteCalls:
    """The calls in flight by number; `awaited` is true while there are any.

    A dedicated thread delivers responses to their sinks, because a sink may run the backend's code.
    A response to a sink without capacity counts as consumed once the sink has capacity again. Until
    then the called model is blocked.
    """

    def __init__(
        self,
        channel: Channel,
        executions: Mapping[int, ReceivedExecution],
        flush_responses: Callable[[], None],
    ) -> None:
        self._channel = channel
        self._executions = executions  # by the numbers of this worker's own requests
        self._flush_responses = flush_responses
        self._numbers = count(1)
        self._open: dict[int, InferRequest] = {}
        self._due: SimpleQueue[Callable[[], None]] = SimpleQueue()
        self._credits: dict[int, CreditCounter] = {}  # by the numbers of streaming calls
        self._starting = Lock()
        self._started = False
        channel.on(Kind.CALL_RESPONSE, self._handle_response)

    def awaited(self) -> bool:
        """Return whether responses are outstanding."""
        return bool(self._open)

    def make(self, request: InferRequest) -> None:
        """Send `request` to its model; a refusal is delivered as a response.

        Raises `Internal` if shared memory cannot be allocated.
        """
        self._start()
        number = next(self._numbers)
        owner, request.owner = request.owner, _CallOwner(self, number)
        self._open[number] = request
        requested = None if request.outputs is None else tuple(request.outputs)
        try:
            rows = [to_host(request.inputs.values())]
            self._channel.send(
                Kind.CALL, [number, *self._caller(request)], rows, [requested], _extras(request)
            )
        except (OSError, MemoryError) as error:
            del self._open[number]
            request.owner = owner
            raise Internal(
                f"no memory for the inputs of model '{request.model_name}': {error}"
            ) from error
        self._flush_responses()

    def cancel(self, number: int) -> None:
        """Forward a cancellation."""
        if number in self._open:
            self._channel.send(Kind.CALL_CANCEL, [number])

    def _caller(self, request: InferRequest) -> tuple[int, int]:
        parent = request.parent
        execution = None if parent is None else self._executions.get(parent.tag)
        return (0, 0) if parent is None or execution is None else (execution.number, parent.tag + 1)

    def _handle_response(self, frame: Frame) -> None:
        number, flags = frame.words[:2]
        rows, _ = self._channel.rows(frame, 2, Tensor)
        final = bool(flags & FINAL)
        request = self._open.pop(number, None) if final else self._open.get(number)
        if request is None:
            return
        fields = frame.extras if frame.has_extras else {}
        response = InferResponse(
            rows[0] if rows else (),
            request.model_name,
            fields.get("version", request.model_version),
            request.id,
            fields.get("parameters", NO_PARAMETERS),
            decode_named_error(fields["error"]) if "error" in fields else None,
            final,
            bool(flags & EMPTY),
        )
        self._due.put(partial(self._deliver, number, request, response))

    def _start(self) -> None:
        with self._starting:
            if not self._started:
                self._started = True
                Thread(target=self._run, name="responses of other models", daemon=True).start()

    def _run(self) -> None:
        while True:
            self._due.get()()  # keep no reference: its buffers are shared memory of the server

    def _deliver(self, number: int, request: InferRequest, response: InferResponse) -> None:
        request.finished = response.final
        try:
            request.sink.put(request, response)
        except Exception:
            log.exception("the sink of a request to model %s failed", request.model_name)
        if response.final:
            self._credits.pop(number, None)
            return
        nbytes = sum([tensor.nbytes for tensor in response.outputs])
        if request.sink.ready(request):
            self._consume(number, nbytes)
        else:
            request.sink.when_ready(
                request, lambda: self._due.put(partial(self._consume, number, nbytes))
            )

    def _consume(self, number: int, nbytes: int) -> None:
        if number not in self._open:
            return
        consumed = self._credits.setdefault(number, CreditCounter()).add(nbytes)
        if consumed:
            self._channel.send(Kind.CALL_CONSUMED, [number, consumed])


class _CallOwner:
    """The owner of a request whose model runs in the server."""

    def __init__(self, calls: RemoteCalls, number: int) -> None:
        self._calls = calls
        self._number = number

    def respond(self, requests: Sequence[InferRequest], responses: Sequence[InferResponse]) -> None:
        raise AssertionError("only the called model responds: this is a bug")

    def reschedule(self, request: InferRequest) -> None:
        raise AssertionError("only the other model reschedules: this is a bug")

    def cancel(self, request: InferRequest) -> None:
        self._calls.cancel(self._number)


def _extras(request: InferRequest) -> dict[str, Any]:
    sequence = request.sequence
    fields: dict[str, Any] = {
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
        fields["classes"] = {
            spec.name: spec.classification
            for spec in request.outputs.values()
            if spec.classification
        }
    return {name: value for name, value in fields.items() if value}
