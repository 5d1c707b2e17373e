from __future__ import annotations

import asyncio

from google.protobuf import text_format

from core.tests.runners.workers.fake_worker import eventually, on_loop
from tritonpy.runners.limiter.execution_count import ExecutionCountLimiter
from tritonpy.runners.workers.permit import Permit
from tritonpy_protos.model_config_pb2 import ModelInstanceGroup

GROUP = text_format.Parse('rate_limiter { resources { name: "R" count: 1 } }', ModelInstanceGroup())


class Hall:
    """Two instances that share one resource, one of them with a permit; `told` counts the grants that it hears of."""

    def __init__(self):
        self.limiter = ExecutionCountLimiter()
        for name in ("mine", "other"):
            self.limiter.register(name, 0, GROUP)
        self.told = 0
        self.permit = Permit(self.limiter, "mine", asyncio.get_running_loop(), self.hear)

    def hear(self):
        self.told += 1


@on_loop
async def test_what_is_free_is_held_at_once_and_once():
    hall = Hall()
    assert hall.permit.take()
    assert hall.permit.take()
    assert not hall.limiter.acquire("other", print)
    hall.permit.release()
    hall.permit.release()
    assert hall.told == 0


@on_loop
async def test_what_is_not_is_asked_for_once_and_heard_of_on_the_loop():
    hall = Hall()
    assert hall.limiter.acquire("other", print)
    assert not hall.permit.take()
    assert not hall.permit.take()
    await asyncio.to_thread(hall.limiter.release, "other")
    await eventually(lambda: hall.told == 1)
    assert hall.permit.take()


@on_loop
async def test_asking_again_lets_those_go_first_who_wait():
    hall, granted = Hall(), []
    assert hall.permit.take()
    assert not hall.limiter.acquire("other", lambda: granted.append(True))
    hall.permit.again()
    assert granted == [True]
    assert not hall.permit.held
    hall.limiter.release("other")
    await eventually(lambda: hall.permit.held)
    assert hall.told == 1


def test_a_grant_after_the_end_of_the_loop_hurts_nobody():
    halls = []

    @on_loop
    async def end_while_it_waits():
        hall = Hall()
        assert hall.limiter.acquire("other", print)
        assert not hall.permit.take()
        halls.append(hall)

    end_while_it_waits()
    halls[0].limiter.release("other")
    assert halls[0].told == 0
