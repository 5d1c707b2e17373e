"""Decoding of batches from the server's frames."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from tritonpy import (
    Batch,
    InferRequest,
    InferResponse,
    InstanceContext,
    ModelContext,
    OutputSpec,
    SequenceInfo,
    Tensor,
)
from tritonpy.execution import Owner
from tritonpy.frontend import NO_PARAMETERS, Sink
from tritonpy_ipc import Frame, Kind
from tritonpy_ipc.channel import Channel
from tritonpy_ipc.sequence_frame import SequenceHeader, SequenceSlot, read_sequence_frame
from tritonpy_ipc.windows import Windows
from tritonpy_workers.backend_process.execution import ReceivedExecution


class ExecutionReceiver:
    """Decodes executions into the queue `backlog`, or into `joining` if the backend requested them.

    `joining` is keyed by execution number. Inputs are views of the received memory. The reading
    thread calls `arrived()` when the backlog has grown.
    """

    def __init__(
        self,
        channel: Channel,
        opened: dict[int, ReceivedExecution],
        owner: Owner,
        windows: Windows,
        arrived: Callable[[], None],
    ) -> None:
        self._channel = channel
        self._open = opened  # executions by the numbers of their unfinished requests
        self._owner = owner
        self._arrived = arrived
        self._sink = _ServerSink(windows)
        self.backlog: deque[ReceivedExecution] = deque()
        self.joining: dict[int, ReceivedExecution] = {}
        channel.on(Kind.EXECUTE, self._take)
        channel.on(Kind.EXECUTE_SEQUENCE, self._take)
        channel.on(Kind.CANCEL, self._cancel)

    def serve(self, model: ModelContext, instance: InstanceContext) -> None:
        """Set the model and instance of the requests; called once, before the first of them."""
        self._model = model
        self._instance = instance
        self._decoupled = model.config.model_transaction_policy.decoupled

    def _take(self, frame: Frame) -> None:
        words = frame.words
        count = words[0]
        number = words[1 + 2 * count]
        extras = frame.extras if frame.has_extras else {}
        headers: list[tuple[SequenceHeader, list[SequenceSlot]]] = []
        at = 2 + 2 * count
        if frame.kind == Kind.EXECUTE_SEQUENCE:
            headers, at = read_sequence_frame(
                words, at, words[2 : at - 1 : 2], extras.get("sequences", {})
            )
        rows, requested = self._channel.rows(frame, at, Tensor)
        ids, fields = extras.get("ids"), extras.get("requests", {})
        executions = []
        index = 0
        for position in range(count):
            requests = {}
            for _ in range(words[2 + 2 * position]):
                request = self._request(number, rows[index], requested[index])
                if ids is not None:
                    request.id = ids[index]
                if str(index) in fields:
                    _set_fields(request, fields[str(index)])
                requests[number] = request
                number += 1
                index += 1
            executions.append(self._execution(words[1 + 2 * position], requests))
        for execution, (header, sequence_slots) in zip(executions, headers, strict=False):
            tensors: Sequence[Tensor] = ()
            if header.controls or header.states:
                tensors = rows[index]
                index += 1
            _set_scheduler_data(execution.batch, header, sequence_slots, tensors)
        for position, outputs in extras.get("state_outputs", {}).items():
            executions[int(position)].batch.state_outputs = outputs
        if extras.get("joins"):
            self.joining.update({execution.number: execution for execution in executions})
        else:
            self.backlog.extend(executions)
            self._arrived()

    def _request(
        self, number: int, row: Sequence[Tensor], requested: tuple[str, ...] | None
    ) -> InferRequest:
        return InferRequest(
            self._model.name,
            {tensor.name: tensor for tensor in row},
            self._sink,
            self._model.version,
            outputs=None if requested is None else {name: OutputSpec(name) for name in requested},
            accepts_decoupled=self._decoupled,
            tag=number,
            owner=self._owner,
        )

    def _execution(self, number: int, requests: dict[int, InferRequest]) -> ReceivedExecution:
        batch = Batch(list(requests.values()), model=self._model, instance=self._instance)
        execution = ReceivedExecution(number, batch, requests)
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
    """A sink in the server, of which only the flow control is known here."""

    def __init__(self, windows: Windows) -> None:
        self._windows = windows

    def put(self, request: InferRequest, response: InferResponse) -> None:
        raise AssertionError(
            "responses go through the request, not through its sink: this is a bug"
        )

    def ready(self, request: InferRequest) -> bool:
        return not self._windows.full(request.tag)

    def when_ready(self, request: InferRequest, callback: Callable[[], None]) -> None:
        self._windows.when_ready(request.tag, callback)


def _set_fields(request: InferRequest, fields: Mapping[str, Any]) -> None:
    request.parameters = fields.get("parameters", NO_PARAMETERS)
    request.timeout_us = fields.get("timeout_us", 0)
    request.priority = fields.get("priority", 0)
    request.deadline_ns = fields.get("deadline_ns", 0)
    request.trace = fields.get("trace")
    request.batch_size = fields.get("batch_size", 1)


def _set_scheduler_data(
    batch: Batch,
    header: SequenceHeader,
    sequence_slots: Sequence[SequenceSlot],
    tensors: Sequence[Tensor],
) -> None:
    batch.controls, batch.states = tensors[: header.controls], tensors[header.controls :]
    for request, sequence_slot in zip(batch.requests, sequence_slots, strict=True):
        if sequence_slot.sequence:
            request.sequence = SequenceInfo(
                sequence_slot.sequence, sequence_slot.starts, sequence_slot.ends
            )
    if header.slots:
        slots: list[InferRequest | None] = [None] * header.slots
        for request, sequence_slot in zip(batch.requests, sequence_slots, strict=True):
            slots[sequence_slot.slot] = request
        batch.slots = slots
