from __future__ import annotations

import asyncio

import grpc
import pytest
from grpc_health.v1.health_pb2 import HealthCheckRequest, HealthCheckResponse
from grpc_health.v1.health_pb2_grpc import HealthStub

from tritonpy_frontend_grpc.health import Health
from tritonpy_protos import SERVICE

from .fake_engine import FakeEngine, run, serving

SERVING, NOT_SERVING = HealthCheckResponse.SERVING, HealthCheckResponse.NOT_SERVING


@pytest.mark.parametrize("service", ["", SERVICE, "any.other"])
def test_check_follows_the_readiness_of_the_server(service):
    async def scenario():
        engine = FakeEngine()
        async with (
            serving(engine) as frontend,
            grpc.aio.insecure_channel(frontend.address()) as channel,
        ):
            check = HealthStub(channel).Check
            assert (await check(HealthCheckRequest(service=service))).status == SERVING
            engine.ready = False
            assert (await check(HealthCheckRequest(service=service))).status == NOT_SERVING

    run(scenario)


def test_watchers_are_notified_of_draining_and_end_with_the_server():
    async def scenario():
        async with (
            serving(FakeEngine()) as frontend,
            grpc.aio.insecure_channel(frontend.address()) as channel,
        ):
            calls = [
                HealthStub(channel).Watch(HealthCheckRequest(service=name))
                for name in ("", SERVICE)
            ]
            assert [(await call.read()).status for call in calls] == [SERVING] * 2
            await frontend.drain()
            assert [(await call.read()).status for call in calls] == [NOT_SERVING] * 2
            stopping = asyncio.create_task(frontend.stop())
            assert [await call.read() for call in calls] == [grpc.aio.EOF] * 2
            await stopping

    run(scenario)


def test_a_watcher_is_notified_of_readiness_changes():
    async def scenario():
        engine = FakeEngine()
        health = Health(engine, period_s=0.001)
        watch = health.Watch(HealthCheckRequest(), None)
        for engine.ready in (True, False, True):
            assert (await anext(watch)).status == (SERVING if engine.ready else NOT_SERVING)
        health.close()
        with pytest.raises(StopAsyncIteration):
            await anext(watch)

    run(scenario)


def test_watching_an_unknown_service_returns_service_unknown():
    async def scenario():
        watch = Health(FakeEngine()).Watch(HealthCheckRequest(service="other"), None)
        assert (await anext(watch)).status == HealthCheckResponse.SERVICE_UNKNOWN
        await watch.aclose()

    run(scenario)


def test_a_server_that_exits_is_not_serving():
    async def scenario():
        engine = FakeEngine()
        engine.exiting = True
        assert (await Health(engine).Check(HealthCheckRequest(), None)).status == NOT_SERVING

    run(scenario)
