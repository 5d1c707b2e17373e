from __future__ import annotations

import asyncio
import logging
import socket
import subprocess
import sys
from dataclasses import replace

import grpc
import pytest

import tritonpy_frontend_h2
from plugins.frontend_grpc.tests.contract import GrpcContract
from plugins.frontend_grpc.tests.fake_engine import FakeEngine, echo, eventually, run
from plugins.frontend_grpc.tests.wire.scenarios.messages import answered, asked
from tritonpy import FrontendContext, StartupError
from tritonpy_frontend_grpc.frontend import GrpcFrontend
from tritonpy_frontend_grpc.options import GrpcOptions
from tritonpy_frontend_h2.frontend import H2GrpcFrontend
from tritonpy_protos import SERVICE

INFER, STREAM, LIVE = (f"/{SERVICE}/{name}" for name in ("ModelInfer", "ModelStreamInfer", "ServerLive"))


class TestH2GrpcFrontend(GrpcContract):
    plugin_class = H2GrpcFrontend
    plugin = tritonpy_frontend_h2
    name = "grpc"

    def test_it_takes_the_options_of_the_other_servers_of_its_protocol(self):
        assert H2GrpcFrontend.Options is GrpcFrontend.Options


def test_the_frontend_is_there_without_grpcio():
    code = "import sys; import tritonpy_frontend_h2.frontend; sys.exit('grpc' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False, timeout=60).returncode == 0


def frontend(claim=None, **options):
    context = FrontendContext("127.0.0.1", logging.getLogger("tritonpy.grpc"), claim=claim)
    return H2GrpcFrontend(GrpcOptions(**{"port": 0, **options}), context)


def test_calls_that_are_answered_are_so_before_the_connection_ends():
    async def scenario():
        engine, served = FakeEngine(), frontend()
        await served.start(engine)
        async with grpc.aio.insecure_channel(served.address()) as channel:
            call = channel.unary_unary(INFER)(asked("later"))
            await eventually(lambda: engine.held)
            draining = asyncio.create_task(served.drain())
            with pytest.raises(grpc.aio.AioRpcError) as refused:
                await channel.unary_unary(INFER)(asked())
            assert refused.value.code() is grpc.StatusCode.UNAVAILABLE
            assert not draining.done()
            engine.held[0].respond(echo(engine.held[0]))
            assert answered(await call) == ("", list(b"1234"))
            await draining
            await served.stop()

    run(scenario)


def test_streams_that_clients_hold_open_end_when_it_stops():
    async def scenario():
        served = frontend()
        await served.start(FakeEngine())
        async with grpc.aio.insecure_channel(served.address()) as channel:
            call = channel.stream_stream(STREAM)()
            await call.write(asked())
            assert await call.read() is not grpc.aio.EOF
            await served.drain()
            await served.stop()
            assert await call.code() is grpc.StatusCode.UNAVAILABLE

    run(scenario)


def test_who_never_reads_does_not_keep_it_from_stopping():
    async def scenario():
        served = frontend()
        await served.start(FakeEngine())
        host, _, port = served.address().rpartition(":")
        with socket.create_connection((host, int(port))):
            await served.stop()

    run(scenario)


def test_nobody_is_let_in_after_it_stopped():
    async def scenario():
        served = frontend()
        await served.start(FakeEngine())
        host, _, port = served.address().rpartition(":")
        await served.stop()
        with pytest.raises(ConnectionError):
            socket.create_connection((host, int(port)), 20)

    run(scenario)


def own(claim):
    """Return the claim as another process has it."""
    return replace(claim, listening=claim.listening and claim.listening.dup())


def test_several_of_them_serve_one_claim(tmp_path):
    async def scenario(**options):
        claiming = frontend(**options)
        claimed = claiming.claim()
        several = [frontend(own(claimed.claim), **options) for _ in range(2)]
        for one in several:
            await one.start(FakeEngine())
        assert {one.address() for one in several} == {claimed.claim.address}
        for _ in range(4):
            async with grpc.aio.insecure_channel(claimed.claim.address) as channel:
                await channel.unary_unary(LIVE)(b"")
        for one in several:
            await one.stop()
        claimed.close()

    run(scenario)
    run(lambda: scenario(host=f"unix:{tmp_path / 'socket'}"))
    assert not (tmp_path / "socket").exists()


def test_a_socket_is_gone_at_the_end_and_a_used_one_is_left_alone(tmp_path):
    path = tmp_path / "socket"

    async def scenario():
        served = frontend(host=f"unix:{path}")
        await served.start(FakeEngine())
        with pytest.raises(StartupError):
            await frontend(host=f"unix:{path}").start(FakeEngine())
        async with grpc.aio.insecure_channel(served.address()) as channel:
            await channel.unary_unary(LIVE)(b"")
        await served.stop()

    run(scenario)
    assert not path.exists()


def test_stopping_one_that_never_started_does_nothing():
    async def scenario():
        await frontend().stop()

    run(scenario)
