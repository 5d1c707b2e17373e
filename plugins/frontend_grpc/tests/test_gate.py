from __future__ import annotations

import asyncio

from tritonpy_frontend_grpc.gate import Gate

from .fake_engine import run


def test_an_empty_gate_closes_at_once():
    async def scenario():
        gate = Gate()
        await gate.close()
        assert gate.closed

    run(scenario)


def test_a_gate_is_closed_when_the_last_one_left():
    async def scenario():
        gate = Gate()
        gate.enter()
        gate.enter()
        closing = asyncio.create_task(gate.close())
        await asyncio.sleep(0)
        assert gate.closed
        gate.leave()
        await asyncio.sleep(0)
        assert not closing.done()
        gate.leave()
        await closing

    run(scenario)
