"""The deferred check of BYTES inputs, which an instance runs off the event loop."""

from __future__ import annotations

from tritonpy.errors import TritonError
from tritonpy.model.request_check import RequestCheck
from tritonpy.types import Batch, InferResponse


def admit_strings(batch: Batch, check: RequestCheck) -> bool:
    """Check large BYTES tensors of a batch and reject invalid requests.

    Return whether any request is left to execute.
    """
    rejected = False
    for request in batch.requests:
        if request.unchecked_strings:
            try:
                check.check_strings(request)
            except TritonError as error:
                rejected = True
                request.respond(InferResponse.failed(request, error))
    if rejected:
        batch.requests = [request for request in batch.requests if not request.finished]
        if batch.slots is not None:
            batch.slots = [None if slot is None or slot.finished else slot for slot in batch.slots]
    return bool(batch.requests)
