"""The part of a request's check that may take long: strings are walked by the instance, not on the event loop."""

from __future__ import annotations

from tritonpy.errors import TritonError
from tritonpy.model.request_check import RequestCheck
from tritonpy.types import Batch, InferResponse


def admit_strings(batch: Batch, check: RequestCheck) -> bool:
    """Walk the large BYTES tensors that were left unchecked; refuse the requests whose are broken, and say whether any is left to run."""
    refused = False
    for request in batch.requests:
        if request.unchecked_strings:
            try:
                check.check_strings(request)
            except TritonError as error:
                refused = True
                request.respond(InferResponse.failed(request, error))
    if refused:
        batch.requests = [request for request in batch.requests if not request.answered]
        if batch.slots is not None:
            batch.slots = [None if slot is None or slot.answered else slot for slot in batch.slots]
    return bool(batch.requests)
