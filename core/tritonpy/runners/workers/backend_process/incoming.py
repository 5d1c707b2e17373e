"""Batches out of the server's frames."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from tritonpy.api.backend import InstanceContext, ModelContext
from tritonpy.ipc import Frame, Kind
from tritonpy.ipc.channel import Channel
from tritonpy.ipc.laden import Added, Seat, read_laden
from tritonpy.ipc.windows import Windows
from tritonpy.runners.workers.backend_process.execution import Execution
from tritonpy.types import (
    NO_PARAMETERS,
    Batch,
    InferRequest,
    InferResponse,
    OutputSpec,
    Owner,
    SequenceInfo,
    Sink,
    Tensor,
)


class Incoming:
    """What waits to be executed, in `backlog`, and what a backend asked for in the middle of an execution, in `joining` by number.

    Inputs are views on the memory that they came in. `arrived()` is called, by whichever thread reads, when the backlog has grown.
    """

    def __init__(
        self,
        channel: Channel,
        opened: dict[int, Execution],
        owner: Owner,
        windows: Windows,
        arrived: Callable[[], None],
    ) -> None:
        self._channel = channel
        self._open = opened  # executions by the numbers of their unanswered requests
        self._owner = owner
        self._arrived = arrived
        self._sink = _ServerSink(windows)
        self.backlog: deque[Execution] = deque()
        self.joining: dict[int, Execution] = {}
        channel.on(Kind.EXECUTE, self._take)
        channel.on(Kind.EXECUTE_LADEN, self._take)
        channel.on(Kind.CANCEL, self._cancel)

    def serve(self, model: ModelContext, instance: InstanceContext) -> None:
        """Take what the requests are for; done once, before the first of them."""
        self._model = model
        self._instance = instance
        self._decoupled = model.config.model_transaction_policy.decoupled

    def _take(self, frame: Frame) -> None:
        words = frame.words
        count = words[0]
        number = words[1 + 2 * count]
        extras = frame.extras if frame.has_extras else {}
        laden: list[tuple[Added, list[Seat]]] = []
        at = 2 + 2 * count
        if frame.kind == Kind.EXECUTE_LADEN:
            laden, at = read_laden(words, at, words[2 : at - 1 : 2], extras.get("sequences", {}))
        rows, wants = self._channel.rows(frame, at, Tensor)
        ids, said = extras.get("ids"), extras.get("requests", {})
        executions = []
        index = 0
        for place in range(count):
            requests = {}
            for _ in range(words[2 + 2 * place]):
                request = self._request(number, rows[index], wants[index])
                if ids is not None:
                    request.id = ids[index]
                if str(index) in said:
                    _refine(request, said[str(index)])
                requests[number] = request
                number += 1
                index += 1
            executions.append(self._execution(words[1 + 2 * place], requests))
        for execution, (added, seats) in zip(executions, laden, strict=False):
            tensors: Sequence[Tensor] = ()
            if added.controls or added.states:
                tensors = rows[index]
                index += 1
            _add(execution.batch, added, seats, tensors)
        for place, outputs in extras.get("state_outputs", {}).items():
            executions[int(place)].batch.state_outputs = outputs
        if extras.get("joins"):
            self.joining.update({execution.number: execution for execution in executions})
        else:
            self.backlog.extend(executions)
            self._arrived()

    def _request(self, number: int, row: Sequence[Tensor], wants: tuple[str, ...] | None) -> InferRequest:
        return InferRequest(
            self._model.name,
            {tensor.name: tensor for tensor in row},
            self._sink,
            self._model.version,
            outputs=None if wants is None else {name: OutputSpec(name) for name in wants},
            accepts_decoupled=self._decoupled,
            tag=number,
            owner=self._owner,
        )

    def _execution(self, number: int, requests: dict[int, InferRequest]) -> Execution:
        batch = Batch(list(requests.values()), model=self._model, instance=self._instance)
        execution = Execution(number, batch, requests)
        for request in batch.requests:
            request.batch = batch
            self._open[request.tag] = execution
        return execution

    def _cancel(self, frame: Frame) -> None:
        for number in frame.words:
            execution = self._open.get(number)
            request = None if execution is None else execution.open.get(number)
            if request is not None:
                request.cancelled = True


class _ServerSink(Sink):
    """Where the answers go is in the server; only how much it can take is known here."""

    def __init__(self, windows: Windows) -> None:
        self._windows = windows

    def put(self, request: InferRequest, response: InferResponse) -> None:
        raise AssertionError("answers go through the request, not through its sink: this is a bug")

    def ready(self, request: InferRequest) -> bool:
        return not self._windows.full(request.tag)

    def when_ready(self, request: InferRequest, callback: Callable[[], None]) -> None:
        self._windows.when_ready(request.tag, callback)


def _refine(request: InferRequest, said: Mapping[str, Any]) -> None:
    request.parameters = said.get("parameters", NO_PARAMETERS)
    request.timeout_us = said.get("timeout_us", 0)
    request.priority = said.get("priority", 0)
    request.deadline_ns = said.get("deadline_ns", 0)
    request.trace = said.get("trace")
    request.batch_size = said.get("batch_size", 1)


def _add(batch: Batch, added: Added, seats: Sequence[Seat], tensors: Sequence[Tensor]) -> None:
    batch.controls, batch.states = tensors[: added.controls], tensors[added.controls :]
    for request, seat in zip(batch.requests, seats, strict=True):
        if seat.sequence:
            request.sequence = SequenceInfo(seat.sequence, seat.starts, seat.ends)
    if added.slots:
        slots: list[InferRequest | None] = [None] * added.slots
        for request, seat in zip(batch.requests, seats, strict=True):
            slots[seat.slot] = request
        batch.slots = slots
