from __future__ import annotations

import asyncio
import logging
import socket
import subprocess
import sys
from dataclasses import replace

import grpc
import pytest

import tritonpy_frontend_grpc
from tritonpy import StartupError
from tritonpy.frontend import FrontendContext
from tritonpy_frontend_grpc.grpcio.frontend import GrpcFrontend
from tritonpy_frontend_grpc.h2.frontend import H2GrpcFrontend
from tritonpy_frontend_grpc.options import GrpcOptions
from tritonpy_protos import SERVICE

from ..contract import GrpcContract
from ..fake_engine import FakeEngine, echo, eventually, run
from .messages import infer_request, read_response

INFER, STREAM, LIVE = (
    f"/{SERVICE}/{name}" for name in ("ModelInfer", "ModelStreamInfer", "ServerLive")
)


class TestH2GrpcFrontend(GrpcContract):
    plugin_class = H2GrpcFrontend
    plugin = tritonpy_frontend_grpc
    name = "grpc"

    def test_the_options_are_those_of_the_grpcio_frontend(self):
        assert H2GrpcFrontend.Options is GrpcFrontend.Options


def test_the_frontend_does_not_import_grpcio():
    code = "import sys; import tritonpy_frontend_grpc.h2.frontend; sys.exit('grpc' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False, timeout=60).returncode == 0


def frontend(claim=None, **options):
    context = FrontendContext("127.0.0.1", logging.getLogger("tritonpy.grpc"), claim=claim)
    return H2GrpcFrontend(GrpcOptions(**{"port": 0, **options}), context)


def test_drain_waits_for_responses_to_be_delivered():
    async def scenario():
        engine, served = FakeEngine(), frontend()
        await served.start(engine)
        async with grpc.aio.insecure_channel(served.address()) as channel:
            call = channel.unary_unary(INFER)(infer_request("later"))
            await eventually(lambda: engine.held)
            draining = asyncio.create_task(served.drain())
            with pytest.raises(grpc.aio.AioRpcError) as refused:
                await channel.unary_unary(INFER)(infer_request())
            assert refused.value.code() is grpc.StatusCode.UNAVAILABLE
            assert not draining.done()
            engine.held[0].respond(echo(engine.held[0]))
            assert read_response(await call) == ("", list(b"1234"))
            await draining
            await served.stop()

    run(scenario)


def test_stop_ends_open_streams():
    async def scenario():
        served = frontend()
        await served.start(FakeEngine())
        async with grpc.aio.insecure_channel(served.address()) as channel:
            call = channel.stream_stream(STREAM)()
            await call.write(infer_request())
            assert await call.read() is not grpc.aio.EOF
            await served.drain()
            await served.stop()
            assert await call.code() is grpc.StatusCode.UNAVAILABLE

    run(scenario)


def test_stop_does_not_wait_for_clients_that_never_read():
    async def scenario():
        served = frontend()
        await served.start(FakeEngine())
        host, _, port = served.address().rpartition(":")
        with socket.create_connection((host, int(port))):
            await served.stop()

    run(scenario)


def test_connections_are_refused_after_stop():
    async def scenario():
        served = frontend()
        await served.start(FakeEngine())
        host, _, port = served.address().rpartition(":")
        await served.stop()
        with pytest.raises(ConnectionError):
            socket.create_connection((host, int(port)), 20)

    run(scenario)


def own(claim):
    """Return a copy of the claim as in another process."""
    return replace(claim, listening=claim.listening and claim.listening.dup())


def test_several_frontends_serve_one_claim(tmp_path):
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


def test_a_unix_socket_is_removed_and_a_used_one_is_not(tmp_path):
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


def test_stop_without_start_does_nothing():
    async def scenario():
        await frontend().stop()

    run(scenario)
