"""Conversion of the server's batches into the requests that a model sees."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import count, islice, repeat
from typing import Any

from .added_inputs import added_inputs
from .api.constants import (
    TRITONSERVER_REQUEST_FLAG_SEQUENCE_END,
    TRITONSERVER_REQUEST_FLAG_SEQUENCE_START,
)
from .api.request import InferenceRequest
from .api.tensor import Tensor
from .context import ExecutionScope
from .host import Host
from .inflight_requests import InflightRequests
from .ipc import Frame, Kind, ProtocolError
from .ipc.channel import Channel
from .ipc.sequence_frame import SequenceHeader, SequenceSlot, read_sequence_frame
from .null_requests import NullHost, fill_slots
from .string_checker import StringChecker

Batches = Iterator["tuple[ExecutionScope, list[InferenceRequest]]"]
_EMPTY: dict[str, Any] = {}


class ReceivedBatches:
    """A parsed EXECUTE frame. Raises `ProtocolError`.

    Requests are created one execution at a time, so that the first can begin immediately.
    """

    def __init__(self, frame: Frame, channel: Channel) -> None:
        words = frame.words
        executions = words[0]
        extras = frame.extras if frame.has_extras else _EMPTY
        self._executions = words[1 : 1 + 2 * executions]  # number and request count of each
        self._number = words[1 + 2 * executions]  # number of the first request
        self._ids = extras.get("ids")
        self._details = extras.get("requests")
        sizes, at = self._executions[1::2], 2 + 2 * executions
        self._sequence_headers: list[tuple[SequenceHeader, list[SequenceSlot]]] = []
        if frame.kind == Kind.EXECUTE_SEQUENCE:
            self._sequence_headers, at = read_sequence_frame(
                words, at, sizes, extras.get("sequences", _EMPTY)
            )
        self._rows, self._wants = channel.rows(frame, at, Tensor.received)
        size = sum(sizes)
        self._unchecked = frozenset(extras.get("unchecked", ()))
        announced = size + sum(
            1 for added, _ in self._sequence_headers if added.controls or added.states
        )
        if len(self._rows) != announced:
            raise ProtocolError(
                f"{announced} rows of tensors were announced but {len(self._rows)} arrived"
            )
        self._added = iter(self._rows[size:])  # tensors that a scheduler added, by execution

    def batches(
        self, host: Host, outputs: Sequence[str], inflight: InflightRequests, strings: StringChecker
    ) -> Batches:
        """Yield the executions in order. `outputs` are for requests that name none.

        Requests whose unchecked strings are malformed are omitted; `strings` rejects them.
        """
        start = 0
        received = InferenceRequest.received
        ids = repeat("") if self._ids is None else self._ids
        every = zip(count(self._number), ids, self._rows, self._wants)
        for index in range(0, len(self._executions), 2):
            execution, size = self._executions[index : index + 2]
            requests = [
                received(host, number, name, 0, row, requested or outputs, _EMPTY, 0, 0)
                for number, name, row, requested in islice(every, size)
            ]
            if self._details is not None:
                for at, request in enumerate(requests, start):
                    _set_details(request, self._details.get(str(at), _EMPTY), inflight)
            if self._sequence_headers:
                requests = self._add_sequence_inputs(
                    *self._sequence_headers[index // 2], requests, host
                )
            if self._unchecked:
                requests = [
                    request
                    for at, request in enumerate(requests, start)
                    if at not in self._unchecked or strings.check(request)
                ]
            names = () if self._ids is None else self._ids[start : start + size]
            yield ExecutionScope(execution, self._number + start, size, names), requests
            start += size

    def _add_sequence_inputs(
        self,
        added: SequenceHeader,
        sequence_slots: Sequence[SequenceSlot],
        requests: list[InferenceRequest],
        host: Host,
    ) -> list[InferenceRequest]:
        """Set each request's sequence, and add its row of the execution's controls and states."""
        for request, sequence_slot in zip(requests, sequence_slots):
            request._correlation_id = sequence_slot.sequence
            request._flags = (
                sequence_slot.starts * TRITONSERVER_REQUEST_FLAG_SEQUENCE_START
                + sequence_slot.ends * TRITONSERVER_REQUEST_FLAG_SEQUENCE_END
            )
        tensors: Sequence[Tensor] = next(self._added) if added.controls or added.states else ()
        if not added.slots:
            for request, inputs in zip(requests, added_inputs(tensors, len(requests))):
                request._inputs = (*request._inputs, *inputs)
            return requests
        slots: list[InferenceRequest | None] = [None] * added.slots
        for request, sequence_slot in zip(requests, sequence_slots):
            slots[sequence_slot.slot] = request
        return fill_slots(slots, added_inputs(tensors, added.slots), NullHost(host.decoupled))


def _set_details(
    request: InferenceRequest, details: Mapping[str, Any], inflight: InflightRequests
) -> None:
    if "parameters" in details:
        request._parameters = details["parameters"]
    if "timeout_us" in details:
        request._timeout = details["timeout_us"]
    if "trace" in details and request.number is not None:
        inflight.trace(request.number, details["trace"])
