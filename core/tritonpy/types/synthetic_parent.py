"""The parent of calls made by an execution of several requests."""

from __future__ import annotations

from tritonpy.types.batch import Batch
from tritonpy.types.request import InferRequest
from tritonpy.types.sink import CallbackSink


def synthetic_parent(model_name: str, batch: Batch) -> InferRequest:
    """Return a request that represents the execution of `batch` as the parent of a call.

    No client sent it, and no response to it is delivered. It marks the call as one made by a model,
    which needs no admission. It also shows schedulers which instance is held during the call.
    """
    return InferRequest(model_name, {}, CallbackSink(_discard), batch=batch)


def _discard(_request: object, _response: object) -> None:
    """Discard the response."""
