from __future__ import annotations

from tritonpy.types import Batch, InferRequest, InferResponse, stand_in


def test_it_stands_for_an_execution_and_hears_nothing():
    batch = Batch([InferRequest("m", {}, None) for _ in range(2)])
    caller = stand_in("m", batch)
    assert caller.batch is batch
    assert caller.parent is None
    assert caller not in batch.requests
    caller.respond(InferResponse(()))
    caller.cancel()
    assert caller.cancelled
