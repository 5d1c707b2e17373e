from __future__ import annotations

import asyncio

from tritonpy_frontend_grpc.inflight import InflightCounter

from .fake_engine import run


def test_drain_returns_immediately_without_requests():
    async def scenario():
        inflight = InflightCounter()
        await inflight.drain()
        assert inflight.is_draining

    run(scenario)


def test_drain_waits_for_the_last_request():
    async def scenario():
        inflight = InflightCounter()
        inflight.add()
        inflight.add()
        closing = asyncio.create_task(inflight.drain())
        await asyncio.sleep(0)
        assert inflight.is_draining
        inflight.remove()
        await asyncio.sleep(0)
        assert not closing.done()
        inflight.remove()
        await closing

    run(scenario)
