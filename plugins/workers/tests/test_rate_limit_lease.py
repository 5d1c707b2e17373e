from __future__ import annotations

import asyncio

from google.protobuf import text_format

from plugins.workers.tests.fake_worker import eventually, on_loop
from tritonpy_protos.model_config_pb2 import ModelInstanceGroup
from tritonpy_rate_limiter.execution_count import ExecutionCountLimiter
from tritonpy_workers.rate_limit_lease import WorkerRateLimitLease

GROUP = text_format.Parse('rate_limiter { resources { name: "R" count: 1 } }', ModelInstanceGroup())


class DispatcherBench:
    """Two instances that share one resource, one of them with a lease.

    `grant_count` counts its grants.
    """

    def __init__(self):
        self.limiter = ExecutionCountLimiter()
        for name in ("mine", "other"):
            self.limiter.register(name, 0, GROUP)
        self.grant_count = 0
        self.lease = WorkerRateLimitLease(
            self.limiter, "mine", asyncio.get_running_loop(), self.hear
        )

    def hear(self):
        self.grant_count += 1


@on_loop
async def test_a_free_lease_is_acquired_immediately_and_once():
    bench = DispatcherBench()
    assert bench.lease.acquire()
    assert bench.lease.acquire()
    assert not bench.limiter.acquire("other", print)
    bench.lease.release()
    bench.lease.release()
    assert bench.grant_count == 0


@on_loop
async def test_a_busy_lease_is_requested_once_and_granted_on_the_loop():
    bench = DispatcherBench()
    assert bench.limiter.acquire("other", print)
    assert not bench.lease.acquire()
    assert not bench.lease.acquire()
    await asyncio.to_thread(bench.limiter.release, "other")
    await eventually(lambda: bench.grant_count == 1)
    assert bench.lease.acquire()


@on_loop
async def test_renewing_lets_waiting_instances_go_first():
    bench, granted = DispatcherBench(), []
    assert bench.lease.acquire()
    assert not bench.limiter.acquire("other", lambda: granted.append(True))
    bench.lease.renew()
    assert granted == [True]
    assert not bench.lease.held
    bench.limiter.release("other")
    await eventually(lambda: bench.lease.held)
    assert bench.grant_count == 1


def test_a_grant_after_the_loop_is_closed_is_ignored():
    halls = []

    @on_loop
    async def end_while_it_waits():
        bench = DispatcherBench()
        assert bench.limiter.acquire("other", print)
        assert not bench.lease.acquire()
        halls.append(bench)

    end_while_it_waits()
    halls[0].limiter.release("other")
    assert halls[0].grant_count == 0
