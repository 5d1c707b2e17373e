"""Conversion of batches into the requests that a model sees."""

from __future__ import annotations

from collections.abc import Sequence

from tritonpy import Batch, InferRequest
from tritonpy_backend_python.in_process.tensors import received_tensor
from tritonpy_worker.added_inputs import added_inputs
from tritonpy_worker.api.constants import (
    TRITONSERVER_REQUEST_FLAG_SEQUENCE_END,
    TRITONSERVER_REQUEST_FLAG_SEQUENCE_START,
)
from tritonpy_worker.api.request import InferenceRequest
from tritonpy_worker.api.tensor import Tensor
from tritonpy_worker.host import Host
from tritonpy_worker.null_requests import NullHost, fill_slots


def requests_of(
    batch: Batch, first: int, host: Host, outputs: Sequence[str]
) -> list[InferenceRequest]:
    """Return the requests of `batch`, numbered from `first`, without copying inputs.

    `outputs` are for requests that name none. Slots without data get null requests, which have no
    number.
    """
    requests = [
        _request(request, number, host, outputs, [*map(received_tensor, request.inputs.values())])
        for number, request in enumerate(batch.requests, first)
    ]
    tensors = [received_tensor(tensor) for tensor in (*batch.controls, *batch.states)]
    if batch.slots is not None:
        each = iter(requests)
        slots = [None if slot is None else next(each) for slot in batch.slots]
        return fill_slots(slots, added_inputs(tensors, len(slots)), NullHost(host.decoupled))
    if tensors:
        for request, more in zip(requests, added_inputs(tensors, len(requests)), strict=True):
            request._inputs = [*request._inputs, *more]
    return requests


def _request(
    request: InferRequest, number: int, host: Host, outputs: Sequence[str], inputs: Sequence[Tensor]
) -> InferenceRequest:
    sequence = request.sequence
    flags = 0
    if sequence is not None:
        flags = (
            sequence.start * TRITONSERVER_REQUEST_FLAG_SEQUENCE_START
            + sequence.end * TRITONSERVER_REQUEST_FLAG_SEQUENCE_END
        )
    return InferenceRequest.received(
        host,
        number,
        request.id,
        0 if sequence is None else sequence.id,
        inputs,
        outputs if not request.outputs else tuple(request.outputs),
        request.parameters,
        flags,
        request.timeout_us,
    )
