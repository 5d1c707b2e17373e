"""Batches that the server sent, as the requests that a model sees."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
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

_NOTHING: dict[str, Any] = {}


class Received:
    """One EXECUTE frame, taken apart by the thread that reads. Raises ProtocolError.

    The requests are made one execution at a time: the first can begin at once, and what the model lets go of is freed early.
    """

    def __init__(self, frame: Frame, channel: Channel) -> None:
        words = frame.words
        count = words[0]
        extras = frame.extras if frame.has_extras else _NOTHING
        self._executions = [words[at : at + 2] for at in range(1, 1 + 2 * count, 2)]  # number and requests of each
        self._number = words[1 + 2 * count]  # of the first request
        self._ids = extras.get("ids")
        self._details = extras.get("requests", _NOTHING)
        self._rows, self._wants = channel.rows(frame, 2 + 2 * count, Tensor.received)
        size = sum([requests for _, requests in self._executions])
        added = extras.get("batch", _NOTHING)
        if len(self._rows) != size + len(added):
            raise ProtocolError(f"{size + len(added)} rows of tensors were announced and {len(self._rows)} came")
        # What a scheduler added to an execution: said in the extras, its tensors in a row behind those of the requests.
        self._added = {int(index): (said, self._rows[size + at]) for at, (index, said) in enumerate(added.items())}

    def batches(
        self, host: Host, outputs: Sequence[str], facts: OpenRequests
    ) -> Iterator[tuple[Current, list[InferenceRequest]]]:
        """Yield the executions in their order; `outputs` are for requests that name none."""
        start = 0
        for index, (execution, size) in enumerate(self._executions):
            stop = start + size
            rows, self._rows[start:stop] = self._rows[start:stop], [()] * size
            if index in self._added:
                rows = [(*row, *more) for row, more in zip(rows, self._added_inputs(index, size))]
            ids = [""] * size if self._ids is None else self._ids[start:stop]
            first = self._number + start
            requests = [
                InferenceRequest.received(host, number, name, 0, row, wants or outputs, _NOTHING, 0, 0)
                for number, name, row, wants in zip(range(first, first + size), ids, rows, self._wants[start:stop])
            ]
            if self._details:
                for at, request in enumerate(requests, start):
                    _refine(request, self._details.get(str(at), _NOTHING), facts)
            start = stop
            yield Current(execution, first, size, ids), requests

    def _added_inputs(self, index: int, size: int) -> list[list[Tensor]]:
        """Return the controls and states of an execution, which are inputs of the model."""
        said, tensors = self._added.pop(index)
        given = said["added"]
        return added_inputs(tensors[: given["controls"] + given["states"]], said.get("slots"), size)


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
