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
from .ipc import Frame, ProtocolError
from .ipc.channel import Channel
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
        self._rows, self._wants = channel.rows(frame, 2 + 2 * executions, Tensor.received)
        size = sum(self._executions[1::2])
        self._unchecked = frozenset(extras.get("unchecked", ()))
        added = extras.get("batch", _NOTHING)
        if len(self._rows) != size + len(added):
            raise ProtocolError(f"{size + len(added)} rows of tensors were announced and {len(self._rows)} came")
        # What a scheduler added to an execution: said in the extras, its tensors in a row behind those of the requests.
        self._added = {int(index): (said, self._rows[size + at]) for at, (index, said) in enumerate(added.items())}

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
            if self._added:
                self._add_inputs(index // 2, requests)
            if self._unchecked:
                requests = [
                    request
                    for at, request in enumerate(requests, start)
                    if at not in self._unchecked or strings.hold(request)
                ]
            names = () if self._ids is None else self._ids[start : start + size]
            yield Current(execution, self._number + start, size, names), requests
            start += size

    def _add_inputs(self, index: int, requests: Sequence[InferenceRequest]) -> None:
        """Give each request its row of the controls and states of its execution, which are inputs of the model."""
        said, tensors = self._added.pop(index, (None, ()))
        if said is None:
            return
        given = said["added"]
        more = added_inputs(tensors[: given["controls"] + given["states"]], said.get("slots"), len(requests))
        for request, inputs in zip(requests, more):
            request._inputs = (*request._inputs, *inputs)


def _refine(request: InferenceRequest, said: Mapping[str, Any], facts: OpenRequests) -> None:
    if "parameters" in said:
        request._parameters = said["parameters"]
    if "timeout_us" in said:
        request._timeout = said["timeout_us"]
    if "sequence" in said:
        request._correlation_id, starts, ends = said["sequence"]
        request._flags = (
            starts * TRITONSERVER_REQUEST_FLAG_SEQUENCE_START + ends * TRITONSERVER_REQUEST_FLAG_SEQUENCE_END
        )
    if "trace" in said and request.number is not None:
        facts.trace(request.number, said["trace"])
