from __future__ import annotations

from tritonpy.types import Batch, InferRequest, InferResponse, synthetic_parent


def test_a_synthetic_parent_represents_an_execution_and_discards_responses():
    batch = Batch([InferRequest("m", {}, None) for _ in range(2)])
    caller = synthetic_parent("m", batch)
    assert caller.batch is batch
    assert caller.parent is None
    assert caller not in batch.requests
    caller.respond(InferResponse(()))
    caller.cancel()
    assert caller.cancelled
