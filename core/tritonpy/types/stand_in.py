"""Who calls other models, where that is an execution of several requests and none of them in particular."""

from __future__ import annotations

from tritonpy.types.batch import Batch
from tritonpy.types.request import InferRequest
from tritonpy.types.sink import CallbackSink


def stand_in(model_name: str, batch: Batch) -> InferRequest:
    """Return a request that nobody sent and nobody answers, as the parent of a call that `batch` waits for.

    By it the call is known for one that a model makes: it passes no admission, and whoever would make it wait sees the instance that is held meanwhile.
    """
    return InferRequest(model_name, {}, CallbackSink(_unheard), batch=batch)


def _unheard(_request: object, _response: object) -> None:
    """Nobody answers it."""
