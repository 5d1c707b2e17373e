"""Batches as the requests that a model sees."""

from __future__ import annotations

from collections.abc import Sequence

from tritonpy import Batch, InferRequest
from tritonpy_backend_python.in_process.tensors import received
from tritonpy_worker.added_inputs import added_inputs
from tritonpy_worker.api.constants import (
    TRITONSERVER_REQUEST_FLAG_SEQUENCE_END,
    TRITONSERVER_REQUEST_FLAG_SEQUENCE_START,
)
from tritonpy_worker.api.request import InferenceRequest
from tritonpy_worker.api.tensor import Tensor
from tritonpy_worker.host import Host


def requests_of(batch: Batch, first: int, host: Host, outputs: Sequence[str]) -> list[InferenceRequest]:
    """Return the requests of `batch` under the numbers from `first` on; `outputs` are for those that name none. No input is copied."""
    added = _added(batch)
    return [
        _request(request, number, host, outputs, [*map(received, request.inputs.values()), *more])
        for number, (request, more) in enumerate(zip(batch.requests, added, strict=True), first)
    ]


def _added(batch: Batch) -> Sequence[Sequence[Tensor]]:
    tensors = [*batch.controls, *batch.states]
    count = len(batch.requests)
    if not tensors:
        return [()] * count
    slots = None if batch.slots is None else [slot is not None for slot in batch.slots]
    return added_inputs([received(tensor) for tensor in tensors], slots, count)


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
