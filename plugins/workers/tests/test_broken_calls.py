"""Calls that a correct worker never makes."""

from __future__ import annotations

import pytest

from plugins.workers.tests.fake_worker import Recorder, floats, on_loop, worker_of
from tritonpy_ipc import Kind

BROKEN_CALLS = {
    "an execution that never was": ((5, 0), {"model": "identity"}),
    "a request that never was": ((0, 5), {"model": "identity"}),
    "no model": ((0, 0), {}),
    "a model that is no text": ((0, 0), {"model": 5}),
    "a parameter that is no parameter": ((0, 0), {"model": "identity", "parameters": {"a": []}}),
    "a sequence without flags": ((0, 0), {"model": "identity", "sequence": [5]}),
    "a time-out below zero": ((0, 0), {"model": "identity", "timeout_us": -1}),
}


@pytest.mark.parametrize("name", BROKEN_CALLS)
@on_loop
async def test_an_invalid_call_ends_the_worker(name):
    words, message = BROKEN_CALLS[name]
    engine = Recorder()
    async with worker_of(engine) as worker:
        worker.call(1, [floats(1)], words, **message)
        assert "it broke the worker protocol" in await worker.until_broken()
    assert engine.requests == []


@on_loop
async def test_a_reused_call_number_ends_the_worker():
    engine = Recorder()
    async with worker_of(engine) as worker:
        worker.call(1, [floats(1)], model="identity")
        worker.call(1, [floats(1)], model="identity")
        assert "call 1 is already in flight" in await worker.until_broken()


@pytest.mark.parametrize("rows", [[], [[floats(1)]] * 2])
@on_loop
async def test_a_call_has_one_row(rows):
    async with worker_of(Recorder()) as worker:
        worker.send(Kind.CALL, [1, 0, 0], rows=rows, extras={"model": "identity"})
        assert f"a call has {len(rows)} rows of tensors" in await worker.until_broken()


@pytest.mark.parametrize(
    "kind", [Kind.CALL_CANCEL, Kind.CALL_CONSUMED, Kind.CALL_ABANDONED, Kind.CALL_AWAITED]
)
@on_loop
async def test_an_unknown_call_number_ends_the_worker(kind):
    async with worker_of(Recorder()) as worker:
        worker.send(kind, [0, 1])
        assert "call 0 was never made" in await worker.until_broken()


@pytest.mark.parametrize("count", [0, 1, 1 << 62])
@on_loop
async def test_consuming_more_responses_than_sent_ends_the_worker(count):
    async with worker_of(Recorder()) as worker:
        worker.call(1, [floats(1)], model="identity")
        worker.send(Kind.CALL_CONSUMED, [1, count])
        assert (
            f"{count} responses of call 1 were consumed, but only 0 were sent"
            in await worker.until_broken()
        )
