"""Batches that the server sent, as the requests that a model sees."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import count, islice, repeat
from typing import Any

from .added_inputs import added_inputs
from .api.constants import TRITONSERVER_REQUEST_FLAG_SEQUENCE_END, TRITONSERVER_REQUEST_FLAG_SEQUENCE_START
from .api.request import InferenceRequest
from .api.tensor import Tensor
from .context import Current
from .host import Host
from .ipc import Frame, Kind, ProtocolError
from .ipc.channel import Channel
from .ipc.laden import Added, Seat, read_laden
from .null_requests import NobodysHost, filled
from .open_requests import OpenRequests
from .unchecked_strings import UncheckedStrings

Batches = Iterator["tuple[Current, list[InferenceRequest]]"]
_NOTHING: dict[str, Any] = {}


class Received:
    """One EXECUTE frame, taken apart by the thread that reads. Raises ProtocolError.

    The requests are made one execution at a time, so that the first can begin at once.
    """

    def __init__(self, frame: Frame, channel: Channel) -> None:
        words = frame.words
        executions = words[0]
        extras = frame.extras if frame.has_extras else _NOTHING
        self._executions = words[1 : 1 + 2 * executions]  # number and requests of each
        self._number = words[1 + 2 * executions]  # of the first request
        self._ids = extras.get("ids")
        self._details = extras.get("requests")
        sizes, at = self._executions[1::2], 2 + 2 * executions
        self._laden: list[tuple[Added, list[Seat]]] = []
        if frame.kind == Kind.EXECUTE_LADEN:
            self._laden, at = read_laden(words, at, sizes, extras.get("sequences", _NOTHING))
        self._rows, self._wants = channel.rows(frame, at, Tensor.received)
        size = sum(sizes)
        self._unchecked = frozenset(extras.get("unchecked", ()))
        announced = size + sum(1 for added, _ in self._laden if added.controls or added.states)
        if len(self._rows) != announced:
            raise ProtocolError(f"{announced} rows of tensors were announced and {len(self._rows)} came")
        self._added = iter(self._rows[size:])  # the tensors that a scheduler added, execution by execution

    def batches(self, host: Host, outputs: Sequence[str], facts: OpenRequests, strings: UncheckedStrings) -> Batches:
        """Yield the executions in their order; `outputs` are for requests that name none.

        Requests with strings that nobody has looked at yet are left out where `strings` finds them broken.
        """
        start = 0
        received = InferenceRequest.received
        ids = repeat("") if self._ids is None else self._ids
        every = zip(count(self._number), ids, self._rows, self._wants)
        for index in range(0, len(self._executions), 2):
            execution, size = self._executions[index : index + 2]
            requests = [
                received(host, number, name, 0, row, wants or outputs, _NOTHING, 0, 0)
                for number, name, row, wants in islice(every, size)
            ]
            if self._details is not None:
                for at, request in enumerate(requests, start):
                    _refine(request, self._details.get(str(at), _NOTHING), facts)
            if self._laden:
                requests = self._seated(*self._laden[index // 2], requests, host)
            if self._unchecked:
                requests = [
                    request
                    for at, request in enumerate(requests, start)
                    if at not in self._unchecked or strings.hold(request)
                ]
            names = () if self._ids is None else self._ids[start : start + size]
            yield Current(execution, self._number + start, size, names), requests
            start += size

    def _seated(
        self, added: Added, seats: Sequence[Seat], requests: list[InferenceRequest], host: Host
    ) -> list[InferenceRequest]:
        """Give each request its sequence, its slot, and its row of the controls and states of its execution, which are inputs of the model."""
        for request, seat in zip(requests, seats):
            request._correlation_id = seat.sequence
            request._flags = (
                seat.starts * TRITONSERVER_REQUEST_FLAG_SEQUENCE_START
                + seat.ends * TRITONSERVER_REQUEST_FLAG_SEQUENCE_END
            )
        tensors: Sequence[Tensor] = next(self._added) if added.controls or added.states else ()
        if not added.slots:
            for request, inputs in zip(requests, added_inputs(tensors, len(requests))):
                request._inputs = (*request._inputs, *inputs)
            return requests
        slots: list[InferenceRequest | None] = [None] * added.slots
        for request, seat in zip(requests, seats):
            slots[seat.slot] = request
        return filled(slots, added_inputs(tensors, added.slots), NobodysHost(host.decoupled))


def _refine(request: InferenceRequest, said: Mapping[str, Any], facts: OpenRequests) -> None:
    if "parameters" in said:
        request._parameters = said["parameters"]
    if "timeout_us" in said:
        request._timeout = said["timeout_us"]
    if "trace" in said and request.number is not None:
        facts.trace(request.number, said["trace"])
