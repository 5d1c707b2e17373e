from __future__ import annotations

import asyncio
import gc
import signal
import socket
from typing import Annotated

import msgspec
import numpy as np
import pytest

from tritonpy import InferRequest, Options, StartupError, Tensor, hookimpl
from tritonpy.frontend import Frontend, LoopSink
from tritonpy_testing import FrontendContract


class LineOptions(Options, frozen=True):
    port: Annotated[int, msgspec.Meta(description="The port.")] = 9000


class Line(Frontend):
    """One number per line; the model `identity` responds."""

    Options = LineOptions

    def __init__(self, options, context):
        super().__init__(options, context)
        self.server = None
        self.writers = set()
        self.live = set()
        self.draining = False

    async def start(self, engine):
        self.engine = engine
        self.sink = LoopSink(
            asyncio.get_running_loop(), lambda request, response: request.tag.set_result(response)
        )
        try:
            self.server = await asyncio.start_server(
                self.serve, self.context.host, self.options.port
            )
        except OSError as error:
            raise StartupError(f"{self.context.host}:{self.options.port}: {error}") from error

    async def serve(self, reader, writer):
        self.writers.add(writer)
        while line := await reader.readline():
            answer = asyncio.get_running_loop().create_future()
            tensor = Tensor.from_numpy("IN", np.array([float(line)], np.float32))
            if self.draining:
                break
            self.live.add(answer)
            self.engine.infer(InferRequest("identity", {"IN": tensor}, self.sink, tag=answer))
            response = await answer
            self.live.discard(answer)
            writer.write(b"%f\n" % response.outputs[0].numpy()[0])
        writer.close()
        self.writers.discard(writer)

    async def drain(self):
        self.draining = True
        await asyncio.gather(*self.live)

    async def stop(self):
        if self.server is not None:
            self.server.close()
            for writer in self.writers:
                writer.close()

    def address(self):
        return (
            "{}:{}".format(*self.server.sockets[0].getsockname())
            if self.server and self.server.sockets
            else ""
        )


class Plugin:
    @staticmethod
    @hookimpl
    def tritonpy_frontends():
        return {"line": Line}


class LineContract(FrontendContract):
    plugin_class = Line

    def call(self, address):
        host, _, port = address.rpartition(":")
        with (
            socket.create_connection((host, int(port)), 5) as connection,
            connection.makefile("rwb") as file,
        ):
            file.write(b"1.5\n")
            file.flush()
            assert float(file.readline()) == 1.5


class TestLine(LineContract):
    plugin = Plugin
    name = "line"


class TestSilentLine(FrontendContract):
    plugin_class = Line


class SharedLine(Line):
    """Also serves connections of a shared port."""

    protocols = ("line",)

    def __init__(self, options, context):
        super().__init__(options, context)
        self.serving_tasks = []

    async def start(self, engine):
        if self.context.single_port is None:
            await super().start(engine)
        else:
            self.engine = engine
            self.sink = LoopSink(
                asyncio.get_running_loop(),
                lambda request, response: request.tag.set_result(response),
            )

    def accept(self, accepted):
        async def serve():
            await self.serve(*await asyncio.open_connection(sock=accepted))

        self.serving_tasks.append(asyncio.get_running_loop().create_task(serve()))

    async def stop(self):
        await super().stop()
        for writer in list(self.writers):
            writer.close()
            await writer.wait_closed()
        await asyncio.gather(*self.serving_tasks)

    def address(self):
        return (
            self.context.single_port.address
            if self.context.single_port is not None
            else super().address()
        )


class TestSharedLine(LineContract):
    plugin_class = SharedLine


class Deaf(SharedLine):
    def accept(self, accepted):
        accepted.close()


class Misplaced(SharedLine):
    def address(self):
        return Line.address(self)


def test_connections_of_a_shared_port_are_checked_if_there_are_protocols(tests):
    assert tests(TestSharedLine) - tests(TestLine) == {
        "test_connections_of_a_shared_port_are_served"
    }


@pytest.mark.parametrize(
    ("kind", "message"),
    [(Deaf, "could not convert|[Cc]onnection"), (Misplaced, "that of the shared port")],
)
def test_a_frontend_that_ignores_a_shared_port_fails(kind, message):
    class Contract(LineContract):
        plugin_class = kind

    with pytest.raises(Exception, match=message):
        Contract().test_connections_of_a_shared_port_are_served()


def test_requests_are_checked_if_call_is_overridden(tests):
    assert tests(LineContract) - tests(TestSilentLine) == {
        "test_a_request_is_answered",
        "test_drain_waits_for_live_requests",
        "test_a_drained_frontend_refuses_requests",
    }


class Homeless(Line):
    def address(self):
        return "somewhere"


class Staying(Line):
    async def stop(self):
        """Keep the port open."""


class OSErrors(Line):
    async def start(self, engine):
        self.server = await asyncio.start_server(self.serve, self.context.host, self.options.port)


class Nameless(Line):
    async def start(self, engine):
        try:
            await super().start(engine)
        except StartupError:
            raise StartupError("the port is taken") from None


class NeedsAStart(Line):
    async def stop(self):
        self.server.close()
        await super().stop()


class KeepsConnections(Line):
    async def stop(self):
        if self.server is not None:
            self.server.close()


class Handler(Line):
    async def start(self, engine):
        await super().start(engine)
        self.before = signal.signal(signal.SIGINT, lambda *_: None)

    async def stop(self):
        if self.server is not None:
            signal.signal(signal.SIGINT, self.before)
        await super().stop()


class Deaf(Line):
    async def serve(self, reader, writer):
        writer.close()


class Hasty(Line):
    async def drain(self):
        self.draining = True


class Open(Line):
    async def drain(self):
        await asyncio.gather(*self.live)


BROKEN = {
    Homeless: "test_it_accepts_connections_from_start_to_stop",
    Staying: "test_it_accepts_connections_from_start_to_stop",
    OSErrors: "test_an_error_names_the_port_in_use",
    Nameless: "test_an_error_names_the_port_in_use",
    NeedsAStart: "test_stop_works_without_start_and_twice",
    KeepsConnections: "test_stop_closes_idle_connections",
    Handler: "test_signal_handlers_are_not_changed",
    Deaf: "test_a_request_is_answered",
    Hasty: "test_drain_waits_for_live_requests",
    Open: "test_a_drained_frontend_refuses_requests",
}


@pytest.mark.parametrize("frontend", BROKEN, ids=lambda kind: kind.__name__)
@pytest.mark.filterwarnings(
    "ignore::ResourceWarning", "ignore::pytest.PytestUnraisableExceptionWarning"
)
def test_a_broken_frontend_fails(failures, frontend, monkeypatch):
    monkeypatch.setattr("tritonpy_testing.contracts.frontend.WAIT_S", 0.2)
    contract = type("Broken", (LineContract,), {"plugin_class": frontend})
    failed = failures(contract)
    gc.collect()  # collect sockets that a broken frontend left open, where warnings are allowed
    assert BROKEN[frontend] in failed
